// Package guide is what flexd says of itself to those who write a client: pages in Markdown,
// shown as HTML under /docs, the same for machines in /llms.txt, and the operations as a
// Postman collection. Every example on the pages is run by a test of the program.
package guide
