// Package guide has flexd's documentation for developers of clients: pages in Markdown, shown
// as HTML under /docs and for machines in /llms.txt, and the operations as a Postman
// collection. A test of the program runs every example on the pages.
package guide
