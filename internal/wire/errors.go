package wire

import "flexd/internal/flex"

// Problem is what flexd adds to every error body beside the interface's detail.
//
//openapi:none
type Problem struct {
	// The kind of failure in one word.
	//
	//openapi:addition
	//openapi:merge {"example": "invalid"}
	Code string `json:"code,omitzero"`
	// Where it is explained.
	//
	//openapi:addition
	//openapi:merge {"format": "uri", "example": "https://flexd.example/docs/errors#invalid"}
	Docs string `json:"docs,omitzero"`
	// OAuth 2.0's word for a failure of a token: invalid_grant, invalid_request or
	// invalid_token.
	//
	//openapi:addition
	Error string `json:"error,omitzero"`
	// As in Request-Id; not beside a 404.
	//
	//openapi:addition
	RequestID string `json:"request_id,omitzero"`
}

// HTTPValidationError is the body of most 422 answers.
type HTTPValidationError struct {
	//openapi:optional
	Detail []ValidationError `json:"detail"`
	Problem
}

// ValidationError is one fault of a request. Every item of Loc is a string, also a list
// position.
type ValidationError struct {
	// Where: body, query or path, then names, and positions of lists from 0. Always strings.
	//
	//openapi:merge {"items": {"anyOf": [{"type": "string"}, {"type": "integer"}]}}
	Loc []string `json:"loc"`
	// What was wrong, and what would be right.
	Msg string `json:"msg"`
	// The machine word for it.
	Type string `json:"type"`
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
