package fsm

import (
	"fmt"
	"html"
	"strings"
)

// The drawing's measures, in SVG's user units (pixels at 100 %).
const (
	boxX, boxW, boxH   = 130, 330, 54
	pillX, pillW       = 670, 170
	pillH, pillStep    = 32, 44
	busX               = boxX + boxW + 26 // where arrows to several exits part
	rowGap             = 48
	laneX, laneStep    = boxX - 34, 22
	top, margin        = 84, 28
	width              = pillX + pillW + margin
	centreX            = boxX + boxW/2
	textShift, radius  = 5, 10
	labelLift, labelIn = 6, 10
)

// SVG draws the state machine from its table: questions down the left in the order in which they are asked, and beside
// each the exit states that its answers lead to. An exit state is drawn wherever it is reached, so that no lines cross.
func (m Machine) SVG() string {
	rows := m.layout(m.Table())
	last := rows[len(rows)-1]
	height := last.y + last.h + margin
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" `+
		`font-family="system-ui, 'DejaVu Sans', Helvetica, Arial, sans-serif">`+"\n", width, height, width, height)
	fmt.Fprintf(&b, "<title>%s</title>\n", m.title())
	b.WriteString(`<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" ` +
		`orient="auto"><path d="M0 0 L10 5 L0 10 z" fill="#64748b"/></marker></defs>` + "\n")
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", width, height)
	fmt.Fprintf(&b, `<circle cx="%d" cy="%d" r="8" fill="#334155"/>`+"\n", centreX, margin)
	label(&b, centreX+18, margin+textShift, "start", "the answers of the probes")
	arrow(&b, fmt.Sprintf("M%d %d V%d", centreX, margin+8, top))
	for _, r := range rows {
		r.draw(&b, rows)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// title is what a drawing shows.
func (m Machine) title() string {
	if m == Worker {
		return "How a Machine's worker is decided about: questions and routes"
	}
	return "How kubeone apply decides: questions and routes"
}

// row is one question in the drawing and what its answers lead to.
type row struct {
	question
	y, h  int // of the whole row
	box   int // the upper edge of the question's box
	exits []Transition
	down  []string       // the answers that lead to the next question
	skips map[int]string // the answers that lead further down, by row
	lane  int            // the lane of those, counted from the boxes outwards
}

// layout places the questions below each other, in the order of the table.
func (m Machine) layout(table []Transition) []row {
	asked := m.questions()
	rows := make([]row, len(asked))
	y, lanes := top, 0
	for i, q := range asked {
		r := row{question: q, y: y, skips: map[int]string{}}
		for _, t := range table {
			switch to := position(asked, t.To); {
			case t.From != q.state:
			case to == len(asked):
				r.exits = append(r.exits, t)
			case to == i+1:
				r.down = append(r.down, string(t.On))
			default:
				r.skips[to] = string(t.On)
			}
		}
		if len(r.skips) > 0 {
			r.lane = lanes
			lanes++
		}
		r.h = max(boxH, (len(r.exits)-1)*pillStep+pillH)
		r.box = y + (r.h-boxH)/2
		y += r.h + rowGap
		rows[i] = r
	}
	return rows
}

func (r row) draw(b *strings.Builder, rows []row) {
	middle := r.box + boxH/2
	fmt.Fprintf(b, `<rect x="%d" y="%d" width="%d" height="%d" rx="%d" fill="#f8fafc" stroke="#334155" `+
		`stroke-width="1.5"/>`+"\n", boxX, r.box, boxW, boxH, radius)
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="middle" font-size="14" font-weight="600" fill="#0f172a">%s</text>`+
		"\n", centreX, middle-1, html.EscapeString(r.text))
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="middle" font-size="11" fill="#64748b">%s</text>`+"\n", centreX,
		middle+16, html.EscapeString(string(r.state)))
	for i, t := range r.exits {
		at := r.y + (r.h-(len(r.exits)-1)*pillStep)/2 + i*pillStep
		arrow(b, fmt.Sprintf("M%d %d H%d V%d H%d", boxX+boxW, middle, busX, at, pillX-2))
		label(b, busX+labelIn, at-labelLift, "start", string(t.On))
		pill(b, at, Route(t.To))
	}
	for i := range rows {
		switch on := r.skips[i]; {
		case on != "":
			x := laneX - r.lane*laneStep
			arrow(b, fmt.Sprintf("M%d %d H%d V%d H%d", boxX, middle, x, rows[i].box+boxH/2, boxX-2))
			label(b, x-labelIn, middle+textShift, "end", on)
		case len(r.down) > 0 && i > 0 && rows[i-1].state == r.state:
			arrow(b, fmt.Sprintf("M%d %d V%d", centreX, r.box+boxH, rows[i].box-2))
			label(b, centreX+labelIn, r.box+boxH+(rows[i].box-r.box-boxH)/2+textShift, "start",
				strings.Join(r.down, "  /  "))
		}
	}
}

func pill(b *strings.Builder, middle int, to Route) {
	c := colour(to)
	fmt.Fprintf(b, `<rect x="%d" y="%d" width="%d" height="%d" rx="%d" fill="%s" stroke="%s" stroke-width="1.5"/>`+"\n",
		pillX, middle-pillH/2, pillW, pillH, pillH/2, c.fill, c.line)
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="middle" font-size="13" font-weight="600" fill="%s">%s</text>`+"\n",
		pillX+pillW/2, middle+textShift, c.text, html.EscapeString(string(to)))
}

func arrow(b *strings.Builder, path string) {
	fmt.Fprintf(b, `<path d="%s" fill="none" stroke="#64748b" stroke-width="1.5" stroke-linejoin="round" `+
		`marker-end="url(#tip)"/>`+"\n", path)
}

func label(b *strings.Builder, x, y int, anchor, text string) {
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="%s" font-size="12" fill="#475569">%s</text>`+"\n", x, y, anchor,
		html.EscapeString(text))
}
