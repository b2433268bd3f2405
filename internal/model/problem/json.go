package problem

import "encoding/json"

// Document is the JSON form of a problem: its code and parameters, and the messages made from them.
type Document struct {
	Code       Code       `json:"code"`
	Class      Class      `json:"class"`
	Host       string     `json:"host,omitempty"`
	Parameters Parameters `json:"parameters,omitempty"`
	What       string     `json:"what"`
	Do         string     `json:"do,omitempty"`
}

// StepDocument is the JSON form of a step. Its text is in InstructionDocument.Steps, at the same index.
type StepDocument struct {
	Code       Code       `json:"code"`
	Parameters Parameters `json:"parameters,omitempty"`
}

// InstructionDocument is the JSON form of an instruction.
type InstructionDocument struct {
	Host     string         `json:"host,omitempty"`
	Reason   string         `json:"reason"`
	Steps    []string       `json:"steps,omitempty"`
	Problems []Problem      `json:"problems"`
	Actions  []StepDocument `json:"actions,omitempty"`
}

// MarshalJSON writes the code, the parameters, and the messages made from them.
func (p Problem) MarshalJSON() ([]byte, error) {
	return json.Marshal(Document{p.Code, p.Class(), p.Host, p.Parameters, p.Text(), p.Remedy()})
}

// UnmarshalJSON reads the code and the parameters; the messages follow from them.
func (p *Problem) UnmarshalJSON(text []byte) error {
	var in Document
	if err := json.Unmarshal(text, &in); err != nil {
		return err
	}
	*p = Problem{Code: in.Code, Host: in.Host, Parameters: in.Parameters}
	return nil
}

// MarshalJSON writes the messages of the reason and the steps, and the codes behind them.
func (i Instruction) MarshalJSON() ([]byte, error) {
	out := InstructionDocument{Host: i.Host, Reason: i.Reason(), Steps: i.Texts(), Problems: i.Problems}
	for _, s := range i.Steps {
		out.Actions = append(out.Actions, StepDocument(s))
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads the codes; the messages follow from them.
func (i *Instruction) UnmarshalJSON(text []byte) error {
	var in InstructionDocument
	if err := json.Unmarshal(text, &in); err != nil {
		return err
	}
	*i = Instruction{Host: in.Host, Problems: in.Problems}
	for _, s := range in.Actions {
		i.Steps = append(i.Steps, Step(s))
	}
	return nil
}

// UnmarshalJSON reads numbers as ints and lists as lists of strings.
func (p *Parameters) UnmarshalJSON(text []byte) error {
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(text, &raw); err != nil {
		return err
	}
	*p = make(Parameters, len(raw))
	for name, value := range raw {
		var word string
		var number int
		var words []string
		switch {
		case json.Unmarshal(value, &word) == nil:
			(*p)[name] = word
		case json.Unmarshal(value, &number) == nil:
			(*p)[name] = number
		default:
			if err := json.Unmarshal(value, &words); err != nil {
				return err
			}
			(*p)[name] = words
		}
	}
	return nil
}
