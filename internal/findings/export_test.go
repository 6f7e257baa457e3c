package findings

// Sign is for tests.
var Sign = sign //nolint:gochecknoglobals // for tests
