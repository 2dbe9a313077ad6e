// Package csvfile reads the CSV files that operators import and writes all that flexd exports.
// A header line names the columns. On reading they may come in any order and unknown ones
// are ignored, unless they are refused (ReadKnown); what is wrong with a row is said with its line. On writing no cell begins a
// formula.
package csvfile
