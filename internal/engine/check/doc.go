// Package check holds plans against their laws before they are sent. It shares no code with
// the planners.
package check
