// Package verify checks the plans of the lab's planners and of fleets, and the certificates of
// their bounds. It shares no code with the planners.
package verify
