package split

import (
	"math/big"
	"strconv"

	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
)

// Sum adds up two reports of usage: of each number that the second has, the first's is added, at any depth. Without a first one it is the second.
func Sum(first, second []byte) []byte {
	if len(first) == 0 {
		return second
	}
	out := Keep(second, func(name string, v *rawjson.Value) bool {
		switch old := Member(rawjson.ValueOf(first), name); {
		case v.Kind == rawjson.Number && old.Kind == rawjson.Number:
			v.Raw = add(old.Raw, v.Raw)
		case v.Kind == rawjson.Object && old.Kind == rawjson.Object:
			v.Raw = Sum(old.Raw, v.Raw)
		}
		return true
	})
	return append(out, '}')
}

// add adds two numbers: exactly, if they are whole, else as far as a float goes.
func add(a, b []byte) []byte {
	x, one := new(big.Int).SetString(string(a), 10)
	y, other := new(big.Int).SetString(string(b), 10)
	if one && other {
		return x.Add(x, y).Append(nil, 10)
	}
	f, _ := strconv.ParseFloat(string(a), 64)
	g, _ := strconv.ParseFloat(string(b), 64)
	return strconv.AppendFloat(nil, f+g, 'g', -1, 64)
}
