package step

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// fields are an intent's fields without its parameters and without its methods.
type fields Intent

// common are the names of those fields in JSON.
var common = []string{"kind", "role", "nodeName", "version", "arch", "digest"}

// MarshalJSON writes the kind and its parameters as one object.
func (i Intent) MarshalJSON() ([]byte, error) {
	text, err := encodeJSON(fields(i))
	if err != nil || i.Params == nil {
		return text, err
	}
	if of := i.Params.Kind(); of != i.Kind {
		return nil, fmt.Errorf("a step of kind %s has parameters of %s", i.Kind, of)
	}
	params, err := encodeJSON(i.Params)
	if err != nil || len(params) == len("{}") {
		return text, err
	}
	text = append(text[:len(text)-1], ',')
	return append(text, params[1:]...), nil
}

// encodeJSON returns JSON in which <, > and & are not escaped.
func encodeJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// UnmarshalJSON reads an intent of a known kind, with the parameters of that kind and no others.
func (i *Intent) UnmarshalJSON(text []byte) error {
	var read fields
	var params map[string]json.RawMessage
	if err := json.Unmarshal(text, &read); err != nil {
		return err
	}
	if err := json.Unmarshal(text, &params); err != nil {
		return err
	}
	r := table[read.Kind]
	if r == nil {
		return fmt.Errorf("%q is not a kind of step", read.Kind)
	}
	for _, name := range common {
		delete(params, name)
	}
	rest, err := json.Marshal(params)
	if err != nil {
		return err
	}
	if r.params.zero == nil {
		err = decodeStrictly(rest, &struct{}{})
	} else {
		read.Params, err = r.params.read(rest)
	}
	if err != nil {
		return fmt.Errorf("a step of kind %s: %w", read.Kind, err)
	}
	*i = Intent(read)
	return nil
}

// decodeStrictly reads one JSON value, and fails if it has a field that into lacks.
func decodeStrictly(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return fmt.Errorf("more than one value")
	}
	return nil
}
