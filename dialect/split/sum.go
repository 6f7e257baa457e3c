package split

import (
	"math/big"
	"strconv"

	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
)

// SumUsage adds the numbers of the first usage report to those of the second, at any depth. The result has the members of
// the second. If first is empty, second is returned unchanged.
func SumUsage(first, second []byte) []byte {
	if len(first) == 0 {
		return second
	}
	out := FilterMembers(second, func(name string, v *rawjson.Value) bool {
		old := Member(rawjson.ValueOf(first), name)
		switch {
		case v.Kind == rawjson.Number && old.Kind == rawjson.Number:
			v.Raw = add(old.Raw, v.Raw)
		case v.Kind == rawjson.Object && old.Kind == rawjson.Object:
			v.Raw = SumUsage(old.Raw, v.Raw)
		}
		return true
	})
	return append(out, '}')
}

// add adds two numbers, exactly if both are integers and otherwise as floats.
func add(a, b []byte) []byte {
	x, xOK := new(big.Int).SetString(string(a), 10)
	y, yOK := new(big.Int).SetString(string(b), 10)
	if xOK && yOK {
		return x.Add(x, y).Append(nil, 10)
	}
	f, _ := strconv.ParseFloat(string(a), 64)
	g, _ := strconv.ParseFloat(string(b), 64)
	return strconv.AppendFloat(nil, f+g, 'g', -1, 64)
}
