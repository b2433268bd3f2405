package view

import (
	"bytes"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"

	"kubeone/internal/model/problem"
	"kubeone/internal/plan"
	"kubeone/internal/probe"
)

// hostile is a text of an attacker: it sets the window title, clears the screen, overwrites the line, changes the
// direction of writing, and repeats these commands in other forms.
const hostile = "\x1b]0;owned\a\x1b[2J\r\x1b[1A\u202e\u009b2J\x9b\n\x00\x7f\u2066"

// infect puts the hostile text before every free text of a value. Equal texts stay equal.
func infect(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() && v.Kind() == reflect.Pointer {
			infect(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				infect(v.Field(i))
			}
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			infect(v.Index(i))
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			element := reflect.New(v.Type().Elem()).Elem()
			element.Set(v.MapIndex(key))
			infect(element)
			renamed := reflect.New(v.Type().Key()).Elem()
			renamed.Set(key)
			infect(renamed)
			v.SetMapIndex(key, reflect.Value{})
			v.SetMapIndex(renamed, element)
		}
	case reflect.String:
		if v.Type() == reflect.TypeFor[string]() && v.CanSet() {
			v.SetString(hostile + v.String())
		}
	default:
	}
}

// infected returns the value with hostile texts.
func infected[T any](value T) T {
	infect(reflect.ValueOf(&value).Elem())
	return value
}

var colour = regexp.MustCompile(`\x1b\[[0-9;]*m`)

func TestNoTextOfAValueReachesTheTerminalAsACommand(t *testing.T) {
	t.Parallel()
	texts := map[string]func(b *bytes.Buffer){}
	for name, p := range map[string]plan.Plan{
		"install": infected(install()), "unreachable": infected(unreachable()), "upgrade": infected(upgrade()),
		"workers": infected(manyWorkers()), "actions": infected(everyAction()),
	} {
		for _, v := range []Verbosity{Normal, Verbose} {
			texts[fmt.Sprintf("plan %s %d", name, v)] = func(b *bytes.Buffer) { Plan(b, inColour, p, v) }
		}
		texts["time of "+name] = func(b *bytes.Buffer) {
			spans := []probe.Span{{Host: hostile, What: hostile, To: time.Second}}
			PlanTiming(b, inColour, p, spans, time.Second, time.Minute)
		}
	}
	for name, st := range map[string]StatusInput{
		"healthy": healthy(), "paused": paused(), "lost": lost(), "bare": bare(), "busy": busy(),
	} {
		st := infected(st)
		texts["status "+name] = func(b *bytes.Buffer) { Status(b, inColour, st) }
	}
	all := infected(runs())
	texts["history"] = func(b *bytes.Buffer) { History(b, inColour, all) }
	for i, r := range all {
		texts[fmt.Sprint("run ", i)] = func(b *bytes.Buffer) { HistoryRun(b, inColour, r) }
	}
	texts["problems"] = func(b *bytes.Buffer) {
		Problems(b, inColour, []problem.Problem{infected(timedOut("a"))}, map[string]string{hostile + "a": hostile})
	}
	for name, s := range map[string]*stream{"joined": joined(), "broken": brokenJoin(), "stopped": stopped()} {
		p, events := infected(s.plan), infected(s.events)
		texts["progress "+name] = func(b *bytes.Buffer) {
			shown := NewProgress(b, inColour, p, true)
			for _, e := range events {
				shown.Event(e)
			}
			shown.Close()
		}
		texts["timing "+name] = func(b *bytes.Buffer) { Timing(b, inColour, p, events) }
	}
	for name, write := range texts {
		got := colour.ReplaceAllString(render(write), "")
		for at, r := range got {
			if r != '\n' && !unicode.IsPrint(r) {
				t.Errorf("%s: %q after %q", name, r, got[max(0, at-60):at])
				break
			}
		}
	}
}

func TestATerminalTakesPlainTextOnly(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	w := NewTerminal(&b)
	text := "error: " + hostile + "cp-1: exit status 1\n\t| größer\n"
	if n, err := w.Write([]byte(text)); n != len(text) || err != nil {
		t.Errorf("%d of %d bytes: %v", n, len(text), err)
	}
	if want := "error: 2J\ufffd\ncp-1: exit status 1\n\t| größer\n"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
	b.Reset()
	Problems(w, inColour, []problem.Problem{timedOut("a")}, nil)
	if !strings.Contains(b.String(), "\x1b[31m") {
		t.Errorf("no colours: %q", b.String())
	}
	if NewLiveLine(w) != nil {
		t.Error("a buffer is taken for a terminal")
	}
	(*LiveLine)(nil).Show("nothing")
	b.Reset()
	live := &LiveLine{w: &b}
	live.Show(hostile + "half")
	live.Show("")
	live.Show("")
	if want := "\r\x1b[K2J\ufffd half\r\x1b[K"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}
