package source

import (
	"regexp"
	"strconv"
	"strings"
)

var (
	percentage = regexp.MustCompile(`^(\d+(?:\.\d+)?)\s*%$`)
	thousands  = regexp.MustCompile(`^(\d+(?:\.\d+)?)\s*([kKmM])$`)
	grouped    = regexp.MustCompile(`^[1-9]\d{0,2}(?:[,'_ ]\d{3})+$`)
	commaPoint = regexp.MustCompile(`^\d+,\d+$`)
	measured   = regexp.MustCompile(`^(\d+(?:\.\d+)?)\s*([A-Za-z]*)$`)
)

// mendNumber returns the number that a text such as 75%, 100k, 100,000 or "80" means, or "" if it means none. A percentage means a share.
func mendNumber(text string) string {
	factor := 1.0
	switch found := thousands.FindStringSubmatch(text); {
	case found != nil:
		text, factor = found[1], 1e3
		if strings.EqualFold(found[2], "m") {
			factor = 1e6
		}
	case percentage.MatchString(text):
		text, factor = percentage.FindStringSubmatch(text)[1], 0.01
	case grouped.MatchString(text):
		text = strings.NewReplacer(",", "", "'", "", "_", "", " ", "").Replace(text)
	case commaPoint.MatchString(text):
		text = strings.Replace(text, ",", ".", 1)
	}
	n, err := finite(strings.TrimSpace(text))
	if err != nil {
		return ""
	}
	return strconv.FormatFloat(n*factor, 'g', 12, 64)
}

// mendWhole is mendNumber for whole numbers.
func mendWhole(text string) string {
	n, err := strconv.ParseFloat(mendNumber(text), 64)
	if err != nil || n != float64(int64(n)) {
		return ""
	}
	return strconv.FormatInt(int64(n), 10)
}

// mendBool returns true or false for a text such as yes or 0, or "" if it means neither.
func mendBool(text string) string {
	switch strings.ToLower(text) {
	case "true", "yes", "y", "on", "1", "enabled":
		return "true"
	case "false", "no", "n", "off", "0", "disabled":
		return "false"
	}
	return ""
}

// mendDuration returns the duration that a text such as 30d or 5 minutes means, or "" if it means none.
func mendDuration(text string) string {
	found := measured.FindStringSubmatch(text)
	if found == nil {
		return ""
	}
	n, err := strconv.ParseFloat(found[1], 64)
	if err != nil {
		return ""
	}
	switch strings.ToLower(found[2]) {
	case "ms", "millisecond", "milliseconds":
		return found[1] + "ms"
	case "s", "sec", "secs", "second", "seconds":
		return found[1] + "s"
	case "m", "min", "mins", "minute", "minutes":
		return found[1] + "m"
	case "h", "hr", "hrs", "hour", "hours":
		return found[1] + "h"
	case "d", "day", "days":
		return strconv.FormatFloat(24*n, 'f', -1, 64) + "h"
	case "w", "week", "weeks":
		return strconv.FormatFloat(7*24*n, 'f', -1, 64) + "h"
	}
	return ""
}

// mendSize returns the size that a text such as 64M or 64 Mi means, or "" if it means none.
func mendSize(text string) string {
	found := measured.FindStringSubmatch(text)
	if found == nil || len(found[2]) > 2 || len(found[2]) == 2 && !strings.HasSuffix(strings.ToLower(found[2]), "i") {
		return ""
	}
	unit := strings.ToUpper(found[2])
	if unit == "" || !strings.Contains("KMG", unit[:1]) || strings.Contains(found[1], ".") {
		return ""
	}
	return found[1] + unit[:1] + "iB"
}
