// Package pb is the generated code of record.proto: the records of the stores. `make proto` writes it again.
package pb
