package view

import "strings"

// cell is one field of a table.
type cell struct {
	text  string
	color ink
}

// table aligns rows in columns. The last column has no fixed width. If the style has a width, a long text in the last
// column is wrapped within that column.
type table struct {
	indent int
	head   []string // column titles; empty means no heading
	rows   [][]cell
}

// addRow adds a row after cleaning the text of each cell.
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

// gap is the number of spaces between columns.
const gap = 2

// columnWidths returns the width of each column.
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

// totalWidth returns the width of the table in columns of the screen.
func (t *table) totalWidth() int {
	n := t.indent
	for _, w := range t.columnWidths() {
		n += w + gap
	}
	return n - gap
}

// dropColumn removes a column.
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

// renderLines returns the lines of each row; the heading, if any, is the first row.
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
		line += s.paintText(c.color, c.text) + strings.Repeat(" ", widths[i]-textWidth(c.text)+gap)
		used += widths[i] + gap
	}
	return nil
}

// renderLast adds the last field to a line with a width of used columns, and returns the lines. It wraps the field
// within its column. If too few columns are left, the field begins on the next line at the second column.
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
		out = append(out, strings.TrimRight(line+s.paintText(c.color, text), " "))
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
