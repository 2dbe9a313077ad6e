// Package storetest opens stores for tests: a fresh SQLite file, and a database without records on
// the PostgreSQL server that FLEXD_TEST_POSTGRES names (test/withpg starts one). Both are copies of
// stores with a schema that is up to date, which test/withpg makes once for all processes of
// tests (Templates). Every store is verified when its test ends.
//
// A database goes from one test of a process to the next, as to make and to remove its thousand files costs more than most tests.
// Its records are removed in between. It is dropped after a test that failed, or that changed its schema, its statistics or its settings, or
// made a table large.
package storetest
