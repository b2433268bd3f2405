package diff

import "fmt"

// op is a line of both texts (' '), of the live one alone ('-'), or of the other alone ('+').
type op struct {
	sign     byte
	from, to int // the line's index in the live text, and in the other
	text     string
}

// mostCells bounds the table of common lines: beyond it, all is another that lies between the lines with which both
// texts begin and end.
const mostCells = 4 << 20

// compare finds a longest common subsequence of lines, after those with which both texts begin and end.
func compare(a, b []string) []op {
	head, tail := 0, 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	var out []op
	for i := range head {
		out = append(out, op{' ', i, i, a[i]})
	}
	out = append(out, middle(a[:len(a)-tail], b[:len(b)-tail], head)...)
	for i := range tail {
		from, to := len(a)-tail+i, len(b)-tail+i
		out = append(out, op{' ', from, to, a[from]})
	}
	return out
}

// middle compares what follows the first lines.
func middle(a, b []string, head int) []op {
	n, m := len(a)-head, len(b)-head
	same := common(a[head:], b[head:])
	var out []op
	i, j := 0, 0
	for i < n || j < m {
		switch {
		case i < n && j < m && a[head+i] == b[head+j]:
			out = append(out, op{' ', head + i, head + j, a[head+i]})
			i, j = i+1, j+1
		case i < n && (j == m || same == nil || same[i+1][j] >= same[i][j+1]):
			out = append(out, op{'-', head + i, head + j, a[head+i]})
			i++
		default:
			out = append(out, op{'+', head + i, head + j, b[head+j]})
			j++
		}
	}
	return out
}

// common is how many lines the rests of two texts have in common, from each line on; nil where that is too much work.
func common(a, b []string) [][]int32 {
	if len(a)*len(b) > mostCells {
		return nil
	}
	same := make([][]int32, len(a)+1)
	same[len(a)] = make([]int32, len(b)+1)
	for i := len(a) - 1; i >= 0; i-- {
		same[i] = make([]int32, len(b)+1)
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				same[i][j] = same[i+1][j+1] + 1
			} else {
				same[i][j] = max(same[i+1][j], same[i][j+1])
			}
		}
	}
	return same
}

// hunks writes what differs, with a few lines around it.
func hunks(ops []op) []string {
	var out []string
	for i := 0; i < len(ops); {
		if ops[i].sign == ' ' {
			i++
			continue
		}
		begin, end := max(0, i-around), i
		for quiet := 0; end < len(ops) && quiet <= 2*around; end++ {
			if quiet++; ops[end].sign != ' ' {
				quiet = 0
			}
		}
		for end > i && ops[end-1].sign == ' ' {
			end--
		}
		end = min(len(ops), end+around)
		out = append(out, hunk(ops[begin:end])...)
		i = end
	}
	return out
}

func hunk(ops []op) []string {
	live, will := 0, 0
	out := []string{""}
	for _, o := range ops {
		if o.sign != '+' {
			live++
		}
		if o.sign != '-' {
			will++
		}
		out = append(out, string(o.sign)+o.text)
	}
	out[0] = fmt.Sprintf("@@ -%s +%s @@", span(ops[0].from, live), span(ops[0].to, will))
	return out
}

// span is where lines are, as unified diffs have it: of none, the line before them.
func span(at, count int) string {
	if count > 0 {
		at++
	}
	return fmt.Sprintf("%d,%d", at, count)
}
