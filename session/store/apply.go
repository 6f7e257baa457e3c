package store

import (
	"strconv"
)

// Target is the record that Apply changes, in a store that is written in Go. It need not check anything.
type Target interface {
	Get(field string) string
	Set(field, value string) // an empty value deletes the field
	Append(log byte, number uint64, entry string)
	Trim(log byte, keep int)
	Clear() // deletes all fields and logs
}

// Holds reports whether the conditions of a part hold.
func (p *Part) Holds(t Target) bool {
	for _, c := range p.If {
		value := t.Get(c.Field)
		ok := value == c.Value
		switch c.Test {
		case Exists:
			ok = value != ""
		case Below:
			ok = number(value)+number(t.Get(c.Other)) < c.Limit
		case Is:
		}
		if !ok {
			return false
		}
	}
	return true
}

// Apply applies a part whose conditions hold. It returns the sums of Add, and the number of the last entry of the first log.
func (p *Part) Apply(t Target) (sums []int64, end uint64) {
	if p.Clear {
		t.Clear()
	}
	for _, f := range p.Set {
		t.Set(f.Name, f.Value)
	}
	for _, f := range p.New {
		if t.Get(f.Name) == "" {
			t.Set(f.Name, f.Value)
		}
	}
	for _, c := range p.Add {
		sum := number(t.Get(c.Name)) + c.N
		t.Set(c.Name, strconv.FormatInt(sum, 10))
		sums = append(sums, sum)
	}
	for i, a := range p.Log {
		last := uint64(number(t.Get(End(a.Log)))) //nolint:gosec // it counts
		for _, entry := range a.Entries {
			last++
			t.Append(a.Log, last, entry)
		}
		t.Set(End(a.Log), strconv.FormatUint(last, 10))
		if i == 0 {
			end = last
		}
	}
	p.list(t, strconv.FormatUint(end, 10))
	for _, trim := range p.Trim {
		t.Trim(trim.Log, trim.Keep)
	}
	return sums, end
}

func (p *Part) list(t Target, number string) {
	for _, f := range p.Listed {
		t.Set(f.Name, t.Get(f.Name)+number+":"+f.Value)
	}
	for _, f := range p.Named {
		t.Set(f.Name+number, f.Value)
	}
}

func number(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64) // 0 if there is none
	return n
}

// JoinKeys returns the keys of recent entries as a record keeps them: without their kind.
func JoinKeys(keys []EntryKey) string {
	b := make([]byte, 0, len(keys)*HashLen)
	for _, k := range keys {
		b = append(b, k[1:]...)
	}
	return string(b)
}

// SplitKeys returns the keys of recent entries of a kind from a record's list.
func SplitKeys(list string, kind byte) (keys []EntryKey) {
	for ; len(list) >= HashLen; list = list[HashLen:] {
		keys = append(keys, EntryKey(string(kind)+list[:HashLen]))
	}
	return keys
}

// KeepRecent adds a commit's recent entries to the list that its record keeps. Of an entry that is there already, the last time counts. It returns
// the entries that are too many.
func (c *Commit) KeepRecent(list string) (kept string, excess []EntryKey) {
	keys := SplitKeys(list, c.RecentKind)
	for _, e := range c.Entries {
		if e.Recent {
			keys = append(keys, e.Key)
		}
	}
	last := map[EntryKey]int{}
	for i, k := range keys {
		last[k] = i
	}
	all := keys[:0]
	for i, k := range keys {
		if last[k] == i {
			all = append(all, k)
		}
	}
	n := max(0, len(all)-c.Most)
	return JoinKeys(all[n:]), all[:n]
}
