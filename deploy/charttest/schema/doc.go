// Package schema makes the schema of the chart's values, and checks that the chart has it. values.yaml describes the chart's own
// values; the structs of Dewpoint's configuration describe the rest.
package schema
