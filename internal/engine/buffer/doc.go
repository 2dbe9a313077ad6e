// Package buffer reuses slices as working memory.
package buffer
