package findings

// Sign exports sign for tests.
var Sign = sign //nolint:gochecknoglobals // for tests
