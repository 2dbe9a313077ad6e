// Package storetest opens stores for tests: a new SQLite file, and a database without records
// on the PostgreSQL server that FLEXD_TEST_POSTGRES names (test/withpg starts one). Both are
// copies of stores with the newest schema, which test/withpg makes once for all processes of
// tests (Templates). Every store is verified when its test ends.
//
// The tests of a process use one database after each other, as creating and removing its
// thousand files takes longer than most tests. Its records are removed in between. It is
// dropped after a test that failed, or that changed its schema, its statistics or its
// settings, or made a table large.
package storetest
