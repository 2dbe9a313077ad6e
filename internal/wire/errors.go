package wire

import "flexd/internal/flex"

// Problem is what flexd adds to every error body beside the interface's detail.
type Problem struct {
	Code      string `json:"code,omitzero"`       // the kind of failure in one word, as "not_found"
	Docs      string `json:"docs,omitzero"`       // where it is explained
	Error     string `json:"error,omitzero"`      // OAuth 2.0's word, of tokens alone: RFC 6749, 5.2; RFC 6750, 3.1
	RequestID string `json:"request_id,omitzero"` // as in the Request-Id field
}

// HTTPValidationError is the body of most 422 answers.
type HTTPValidationError struct {
	Detail []ValidationError `json:"detail"`
	Problem
}

// ValidationError is one fault of a request. Every item of Loc is a string, also a list
// position.
type ValidationError struct {
	Loc  []string `json:"loc"`
	Msg  string   `json:"msg"`
	Type string   `json:"type"`
}

// ErrorWithDetail is the body of the errors that are one text.
type ErrorWithDetail struct {
	Detail string `json:"detail"`
	Problem
}

// MPANValidationError is the body of the errors that list the reasons why an MPAN is refused.
type MPANValidationError struct {
	Detail []string `json:"detail"`
	Problem
}

// ValidationErrors is the body for faults.
func ValidationErrors(faults []flex.Fault) HTTPValidationError {
	body := HTTPValidationError{Detail: make([]ValidationError, len(faults))}
	for i, f := range faults {
		body.Detail[i] = ValidationError(f)
	}
	return body
}
