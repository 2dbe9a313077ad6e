// Package storetest opens stores for tests: a fresh SQLite file, and a fresh database on
// the PostgreSQL server that FLEXD_TEST_POSTGRES names (test/withpg starts one). Both are copies of
// stores with a schema that is up to date, which test/withpg makes once for all processes of
// tests (Templates). A database goes from one test to the next, without its records. Every store is verified when its test ends.
package storetest
