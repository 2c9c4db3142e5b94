// Package pgtest provides a PostgreSQL for tests, so that none is skipped for
// want of one. It takes, in this order: the server that PAWL_TEST_POSTGRES
// names; a server of its own from binaries on this machine, run in a temporary
// folder by an unprivileged user and listening on 127.0.0.1 only; the same
// after installing Debian's package, when root; a container. If none can be
// had, the tests fail and say so.
//
// A package's tests call [Main] from TestMain and [Database] for each database
// they need; [Pooled] puts a PgBouncer in transaction mode before one, found or
// installed in the same way. withpostgres starts one server for a whole command, so that the
// test binaries of many packages share it.
package pgtest

// Variable names the environment variable with the URL of a server that tests
// may make databases on.
const Variable = "PAWL_TEST_POSTGRES"
