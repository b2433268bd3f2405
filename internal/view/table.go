package view

import "strings"

// cell is one field of a table.
type cell struct {
	text string
	as   ink
}

// table aligns rows in columns. The last column is as wide as it likes, and is broken under its own beginning where the
// style has a width.
type table struct {
	indent int
	head   []string // empty: no heading
	rows   [][]cell
}

// addRow adds a row, its texts cleaned.
func (t *table) addRow(row ...cell) {
	for i := range row {
		row[i].text = cleanText(row[i].text)
	}
	t.rows = append(t.rows, row)
}

// addTexts adds a row without colours.
func (t *table) addTexts(texts ...string) {
	row := make([]cell, 0, len(texts))
	for _, text := range texts {
		row = append(row, cell{text, plain})
	}
	t.addRow(row...)
}

// gap stands between two columns.
const gap = 2

// columnWidths is how wide each column is.
func (t *table) columnWidths() []int {
	var out []int
	measure := func(i int, text string) {
		for len(out) <= i {
			out = append(out, 0)
		}
		out[i] = max(out[i], textWidth(text))
	}
	for i, h := range t.head {
		measure(i, h)
	}
	for _, row := range t.rows {
		for i, c := range row {
			measure(i, c.text)
		}
	}
	return out
}

// totalWidth is how many columns of the screen the table takes.
func (t *table) totalWidth() int {
	n := t.indent
	for _, w := range t.columnWidths() {
		n += w + gap
	}
	return n - gap
}

// dropColumn takes a column out.
func (t *table) dropColumn(title string) {
	for i, h := range t.head {
		if h != title {
			continue
		}
		t.head = append(t.head[:i:i], t.head[i+1:]...)
		for r, row := range t.rows {
			t.rows[r] = append(row[:i:i], row[i+1:]...)
		}
		return
	}
}

// renderLines renders the table, for each row the lines that it takes; the heading, if there is one, is the first row.
func (t *table) renderLines(s Style) [][]string {
	widths := t.columnWidths()
	rows := t.rows
	if len(t.head) > 0 {
		head := make([]cell, 0, len(t.head))
		for _, h := range t.head {
			head = append(head, cell{h, dim})
		}
		rows = append([][]cell{head}, rows...)
	}
	out := make([][]string, 0, len(rows))
	for _, row := range rows {
		out = append(out, t.renderRow(s, row, widths))
	}
	return out
}

func (t *table) renderRow(s Style, row []cell, widths []int) []string {
	line, used := strings.Repeat(" ", t.indent), t.indent
	for i, c := range row {
		if i == len(row)-1 {
			return t.renderLast(s, c, line, used, t.indent+widths[0]+gap)
		}
		line += s.paintText(c.as, c.text) + strings.Repeat(" ", widths[i]-textWidth(c.text)+gap)
		used += widths[i] + gap
	}
	return nil
}

// renderLast adds the last field to a line that takes the columns up to used: beside it, broken under its own
// beginning; where the screen is too narrow for that, below it, under the second column.
func (t *table) renderLast(s Style, c cell, line string, used, second int) []string {
	var out []string
	if s.Width > 0 && used+textWidth(c.text) > s.Width && s.remainingWidth(used) == 0 {
		out = append(out, strings.TrimRight(line, " "))
		line, used = strings.Repeat(" ", second), second
	}
	for i, text := range wrapText(c.text, s.remainingWidth(used)) {
		if i > 0 {
			line = strings.Repeat(" ", used)
		}
		out = append(out, strings.TrimRight(line+s.paintText(c.as, text), " "))
	}
	return out
}

// addTable adds a table to the page.
func (p *page) addTable(t *table) {
	for _, row := range t.renderLines(p.style) {
		for _, line := range row {
			p.addLine(line)
		}
	}
}
