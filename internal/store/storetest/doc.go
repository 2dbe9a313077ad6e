// Package storetest opens stores for tests: a fresh SQLite file, and a fresh database on
// the PostgreSQL server that FLEXD_TEST_POSTGRES names (test/withpg starts one). Every store
// is verified when its test ends.
package storetest
