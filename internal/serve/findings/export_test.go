package findings

// Sign exports sign for tests.
var Sign = sign // for tests
