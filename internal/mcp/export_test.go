package mcp

// ServeHTTP is OverHTTP with other servers than flexd's, for what speaks to servers of its own.
var ServeHTTP = overHTTP
