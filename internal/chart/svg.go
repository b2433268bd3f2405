package chart

import (
	"fmt"
	"html"
	"strings"
)

// The drawing's measures, in SVG's user units (pixels at 100 %).
const (
	boxX, boxW, boxH   = 130, 330, 54
	leastPillX, pillW  = 670, 170
	pillH, pillStep    = 32, 44
	busX               = boxX + boxW + 26 // where arrows to several ends part
	rowGap             = 48
	laneX, laneStep    = boxX - 34, 22
	top, margin        = 84, 28
	headingH           = 56
	centreX            = boxX + boxW/2
	textShift, radius  = 5, 10
	labelLift, labelIn = 6, 10
	letterW            = 6.5 // of a label, on average
)

// SVG draws the chart: states down the left in their order, and beside each the ends to which it leads.
func (c Chart) SVG() string {
	d := drawing{pillX: c.pillX()}
	y := 0
	for _, p := range c.Parts {
		y = d.part(p, y)
	}
	width, height := d.pillX+pillW+margin, y-rowGap+margin
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" `+
		`font-family="system-ui, 'DejaVu Sans', Helvetica, Arial, sans-serif">`+"\n", width, height, width, height) +
		fmt.Sprintf("<title>%s</title>\n", c.Title) +
		`<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" ` +
		`orient="auto"><path d="M0 0 L10 5 L0 10 z" fill="#64748b"/></marker></defs>` + "\n" +
		fmt.Sprintf(`<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", width, height) +
		d.String() + "</svg>\n"
}

// pillX is where ends begin: the longest label has room before them.
func (c Chart) pillX() int {
	x := leastPillX
	for _, p := range c.Parts {
		for _, t := range p.Transitions {
			if p.beside(t) {
				x = max(x, busX+2*labelIn+int(letterW*float64(len(t.On))))
			}
		}
	}
	return x
}

// drawing is what is drawn so far.
type drawing struct {
	strings.Builder
	pillX int
}

// part draws one state machine from y on, and returns where the next one may begin.
func (d *drawing) part(p Part, y int) int {
	first := y + margin
	if p.Heading != "" {
		fmt.Fprintf(d, `<text x="%d" y="%d" text-anchor="middle" font-size="18" font-weight="600" fill="#0f172a">`+
			"%s</text>\n", centreX, y+margin+textShift, html.EscapeString(p.Heading))
		first = y + headingH
	}
	if p.Start != "" {
		fmt.Fprintf(d, `<circle cx="%d" cy="%d" r="8" fill="#334155"/>`+"\n", centreX, y+margin)
		d.label(centreX+18, y+margin+textShift, "start", p.Start)
		d.arrow(fmt.Sprintf("M%d %d V%d", centreX, y+margin+8, y+top))
		first = y + top
	}
	rows := p.layout(first)
	for _, r := range rows {
		d.row(p, r, rows)
	}
	last := rows[len(rows)-1]
	return last.y + last.h + rowGap
}

// row is one state in the drawing and what leads from it.
type row struct {
	State
	y, h  int // of the whole row
	box   int // the upper edge of the state's box
	exits []Transition
	down  []string       // what leads to the next state
	skips map[int]string // what leads further down, by row
	lane  int            // the lane of those, counted from the boxes outwards
}

// beside reports whether what a transition leads to is drawn beside its state, like an end.
func (p Part) beside(t Transition) bool {
	from, to := p.row(t.From), p.row(t.To)
	return to == len(p.States) || to <= from || to > from+1 && !p.Lanes
}

// layout places the states below each other.
func (p Part) layout(y int) []row {
	rows := make([]row, len(p.States))
	lanes := 0
	for i, s := range p.States {
		r := row{State: s, y: y, skips: map[int]string{}}
		for _, t := range p.Transitions {
			switch to := p.row(t.To); {
			case t.From != s.ID:
			case p.beside(t):
				r.exits = append(r.exits, t)
			case to == i+1:
				r.down = append(r.down, t.On)
			default:
				r.skips[to] = t.On
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

func (d *drawing) row(p Part, r row, rows []row) {
	middle := r.box + boxH/2
	fmt.Fprintf(d, `<rect x="%d" y="%d" width="%d" height="%d" rx="%d" fill="#f8fafc" stroke="#334155" `+
		`stroke-width="1.5"/>`+"\n", boxX, r.box, boxW, boxH, radius)
	fmt.Fprintf(d, `<text x="%d" y="%d" text-anchor="middle" font-size="14" font-weight="600" fill="#0f172a">%s</text>`+
		"\n", centreX, middle-1, html.EscapeString(r.Text))
	fmt.Fprintf(d, `<text x="%d" y="%d" text-anchor="middle" font-size="11" fill="#64748b">%s</text>`+"\n", centreX,
		middle+16, html.EscapeString(r.Note))
	for i, t := range r.exits {
		at := r.y + (r.h-(len(r.exits)-1)*pillStep)/2 + i*pillStep
		d.arrow(fmt.Sprintf("M%d %d H%d V%d H%d", boxX+boxW, middle, busX, at, d.pillX-2))
		d.label(busX+labelIn, at-labelLift, "start", t.On)
		d.pill(at, p.state(t.To))
	}
	for i := range rows {
		switch on := r.skips[i]; {
		case on != "":
			x := laneX - r.lane*laneStep
			d.arrow(fmt.Sprintf("M%d %d H%d V%d H%d", boxX, middle, x, rows[i].box+boxH/2, boxX-2))
			d.label(x-labelIn, middle+textShift, "end", on)
		case len(r.down) > 0 && i > 0 && rows[i-1].ID == r.ID:
			d.arrow(fmt.Sprintf("M%d %d V%d", centreX, r.box+boxH, rows[i].box-2))
			d.label(centreX+labelIn, r.box+boxH+(rows[i].box-r.box-boxH)/2+textShift, "start",
				strings.Join(r.down, "  /  "))
		}
	}
}

func (d *drawing) pill(middle int, to State) {
	c := to.Tone.paint()
	fmt.Fprintf(d, `<rect x="%d" y="%d" width="%d" height="%d" rx="%d" fill="%s" stroke="%s" stroke-width="1.5"/>`+"\n",
		d.pillX, middle-pillH/2, pillW, pillH, pillH/2, c.fill, c.line)
	fmt.Fprintf(d, `<text x="%d" y="%d" text-anchor="middle" font-size="13" font-weight="600" fill="%s">%s</text>`+"\n",
		d.pillX+pillW/2, middle+textShift, c.text, html.EscapeString(to.Text))
}

func (d *drawing) arrow(path string) {
	fmt.Fprintf(d, `<path d="%s" fill="none" stroke="#64748b" stroke-width="1.5" stroke-linejoin="round" `+
		`marker-end="url(#tip)"/>`+"\n", path)
}

func (d *drawing) label(x, y int, anchor, text string) {
	fmt.Fprintf(d, `<text x="%d" y="%d" text-anchor="%s" font-size="12" fill="#475569">%s</text>`+"\n", x, y, anchor,
		html.EscapeString(text))
}
