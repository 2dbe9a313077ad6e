// Package buffer reuses slices as working memory, so that planners allocate nothing once they
// have grown to the size of their problems.
package buffer
