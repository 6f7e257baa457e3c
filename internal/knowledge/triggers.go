package knowledge

import (
	"fmt"

	"github.com/coregx/ahocorasick"
)

// Topics are the topics of a folder, ordered by path. They do not change.
type Topics struct {
	all      []Topic
	triggers *ahocorasick.Automaton // finds all triggers in one pass; nil: there are none
	uses     [][]use                // of each trigger
	longest  int                    // bytes of the longest trigger
}

// use is a topic that has a trigger.
type use struct {
	topic int // index in Topics.all
	rank  int // index in the topic's triggers
}

// Limits of a trigger, and of all distinct ones of a folder together, in bytes. Looking for them takes at most 1 KiB of memory for each byte, and
// preparing that a time that grows with the product of both.
const (
	maxTrigger  = 256
	maxTriggers = 64 << 10
)

// NewTopics prepares topics to be looked for.
func NewTopics(all []Topic) (*Topics, error) {
	t := &Topics{all: all}
	ids := map[string]int{}
	builder, total := ahocorasick.NewBuilder(), 0
	for i := range all {
		for rank, trigger := range all[i].Triggers {
			id, known := ids[trigger]
			if !known {
				id = len(ids)
				ids[trigger] = id
				builder.AddPattern([]byte(trigger))
				t.uses = append(t.uses, nil)
				t.longest = max(t.longest, len(trigger))
				total += len(trigger)
			}
			t.uses[id] = append(t.uses[id], use{i, rank})
		}
	}
	if total > maxTriggers {
		return nil, fmt.Errorf("the triggers of all files together are longer than %d bytes: shorten them, or leave some out", maxTriggers)
	}
	if len(ids) == 0 {
		return t, nil
	}
	var err error
	if t.triggers, err = builder.Build(); err != nil {
		return nil, fmt.Errorf("triggers: %w", err)
	}
	return t, nil
}

// Len returns the number of topics.
func (t *Topics) Len() int { return len(t.all) }

// Triggered is a topic, with the first of its triggers that a text contains.
type Triggered struct {
	*Topic
	Trigger string // empty: the topic always applies
}

// In returns the topics of which a text typed by a user, in lower case, contains a trigger, and those without triggers.
func (t *Topics) In(lower string) (found []Triggered) {
	ranks := t.ranks(lower)
	for i := range t.all {
		topic := &t.all[i]
		switch {
		case len(topic.Triggers) == 0:
			found = append(found, Triggered{Topic: topic})
		case ranks[i] < len(topic.Triggers):
			found = append(found, Triggered{topic, topic.Triggers[ranks[i]]})
		}
	}
	return found
}

// ranks returns the rank of each topic's first trigger in a text, or the number of its triggers if there is none.
func (t *Topics) ranks(text string) []int {
	ranks := make([]int, len(t.all))
	open := 0 // topics whose first trigger was not found yet
	for i := range t.all {
		ranks[i] = len(t.all[i].Triggers)
		if ranks[i] > 0 {
			open++
		}
	}
	// The library returns all matches at once, so the text is searched in parts, each with the beginning of the next one.
	const part = 16 << 10
	for ; open > 0 && text != ""; text = text[min(part, len(text)):] {
		for _, m := range t.triggers.FindAllOverlapping([]byte(text[:min(part+t.longest, len(text))])) {
			for _, u := range t.uses[m.PatternID] {
				if rank := &ranks[u.topic]; u.rank < *rank {
					*rank = u.rank
					if u.rank == 0 {
						open--
					}
				}
			}
		}
	}
	return ranks
}
