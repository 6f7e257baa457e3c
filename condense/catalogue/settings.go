package catalogue

import (
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/dewpoint-proxy/dewpoint/condense"
)

// With returns the settings with an override applied, and without PerModel.
func (s Settings) With(o Override) Settings {
	s.PerModel = nil
	to := reflect.ValueOf(&s).Elem()
	for f, threshold := range reflect.ValueOf(o).Fields() {
		if !threshold.IsNil() {
			to.FieldByName(f.Name).Set(threshold.Elem())
		}
	}
	return s
}

// Set sets the field of a key to a value that can be converted to its type, and reports whether there is such a key.
func (s *Settings) Set(key string, value any) bool {
	for f, field := range reflect.ValueOf(s).Elem().Fields() {
		if keyOf(f) == key {
			field.Set(reflect.ValueOf(value).Convert(f.Type))
			return true
		}
	}
	return false
}

// Rolling returns the settings that rolling condensers share, as far as the configuration says them.
func (s Settings) Rolling() condense.Settings {
	return condense.Settings{
		MaxSize: s.MaxSize, MaxTokens: s.MaxTokens, MinTokens: s.MinTokens, KeepFirst: s.KeepFirst, MinimumProgress: s.MinimumProgress,
		BackgroundAt: s.BackgroundAt, Recite: s.Recite,
	}
}

// Key returns the API key of a custom condenser's service, empty if there is none.
func (s Settings) Key() string {
	if s.APIKey == nil {
		return ""
	}
	return s.APIKey.Reveal()
}

// Stages returns the settings of the condenser and of all that a pipeline contains, at every depth.
func (s Settings) Stages() []Settings {
	all := []Settings{s}
	for _, stage := range s.Condensers {
		all = append(all, stage.Stages()...)
	}
	return all
}

// Uses reports whether set is true for one of the stages.
func (s Settings) Uses(set func(Settings) bool) bool { return slices.ContainsFunc(s.Stages(), set) }

// Waits returns the longest deadline of the stages, which is how long a request waits for a summary. never reports that summaries are written
// but no request waits for one.
func (s Settings) Waits() (longest time.Duration, never bool) {
	waits := false
	for _, stage := range s.Stages() {
		if !stage.Entry().Asks() {
			continue
		}
		longest = max(longest, stage.Deadline)
		if stage.Wait == WaitNever {
			never = true
		} else if stage.Deadline > 0 {
			waits = true
		}
	}
	return longest, never && !waits
}

// Prepares reports whether summaries are prepared in advance for at least one model.
func (s Settings) Prepares() bool {
	return s.Uses(func(stage Settings) bool {
		for _, o := range stage.PerModel {
			if o.BackgroundAt != nil && *o.BackgroundAt > 0 {
				return true
			}
		}
		return stage.BackgroundAt > 0
	})
}

// Entry returns the entry of the condenser's type, a zero one if that is unknown.
func (s Settings) Entry() Entry {
	e, _ := Find(s.Type)
	return e
}

// ByPrice reports whether the condenser condenses when that pays off.
func (s Settings) ByPrice() bool { return s.Trigger == TriggerEconomics }

// keyOf returns the key of a field of Settings or Override.
func keyOf(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
	return name
}
