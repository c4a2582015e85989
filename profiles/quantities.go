package profiles

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/dlwb/dlwb/internal/pattern"
)

var (
	quantity  = pattern.New(`^([0-9]+(?:\.[0-9]+)?) ?([A-Za-z$€]*)$`)
	partForm  = pattern.New(`^([0-9]+(?:\.[0-9]+)?)([a-z]+)`)
	fullWords = pattern.New(`^([0-9]+) ?(day|hour|hr|minute|min|second|sec)s?$`)
)

// sizeUnits are in falling order; those with an i are powers of 1024.
var sizeUnits = []struct {
	name  string
	bytes int64
}{
	{"TiB", 1 << 40}, {"TB", 1e12}, {"GiB", 1 << 30}, {"GB", 1e9}, {"MiB", 1 << 20}, {"MB", 1e6},
	{"KiB", 1 << 10}, {"KB", 1e3}, {"B", 1},
}

func readSize(text string) (int64, flaw) {
	m := quantity.FindStringSubmatch(text)
	if m == nil {
		return 0, flaw{why: "this is no size", next: "write a number and a unit, such as 200GB"}
	}
	if m[2] == "" {
		return 0, flaw{why: "a size needs a unit", nearest: m[1] + "GB"}
	}
	for _, u := range sizeUnits {
		if strings.EqualFold(u.name, m[2]) {
			n, err := strconv.ParseFloat(m[1], 64)
			if v := n * float64(u.bytes); err == nil && v >= 1 && v < 1e18 {
				return int64(math.Round(v)), flaw{}
			}
			return 0, flaw{why: "no disk or memory has this size", next: "write a number and a unit, such as 200GB"}
		}
	}
	fl := flaw{why: quote(m[2]) + " is no unit of size", next: "one of KB, MB, GB, TB (powers of 1000), KiB, MiB, GiB, TiB (powers of 1024)"}
	for _, u := range sizeUnits { // 200G, 5Gi
		if strings.EqualFold(u.name, m[2]+"B") {
			fl.nearest = m[1] + u.name
		}
	}
	return 0, fl
}

// writeSize gives a size in the greatest unit that holds it in whole numbers.
func writeSize(v int64) string {
	for _, u := range sizeUnits {
		if v > 0 && v%u.bytes == 0 {
			return strconv.FormatInt(v/u.bytes, 10) + u.name
		}
	}
	return ""
}

const sizePattern = `[0-9]+(\.[0-9]+)? ?([KMGTkmgt][iI]?)?[Bb]$`

var sizeType = scalarType("size", "a number with KB, MB, GB, TB (powers of 1000) or KiB, MiB, GiB, TiB (powers of 1024)",
	stringSchema("^"+sizePattern), func(_ *Field, text string) (int64, flaw) { return readSize(text) },
	func(_ *Field, v int64) string { return writeSize(v) })

var leastSizeType = scalarType("least size", "a size, with or without >= before it",
	stringSchema("^(>= *)?"+sizePattern), func(_ *Field, text string) (int64, flaw) {
		size, found := strings.CutPrefix(text, ">=")
		if !found && strings.ContainsAny(text, "<>=") {
			fl := flaw{why: "a machine must have at least so much: >= is all that can be said", next: "write >= and a size, such as >=24GB"}
			if v, bad := readSize(strings.TrimLeft(text, "<>= ")); bad.why == "" {
				fl.nearest, fl.next = ">="+writeSize(v), ""
			}
			return 0, fl
		}
		return readSize(strings.TrimSpace(size))
	}, func(_ *Field, v int64) string {
		if v == 0 {
			return ""
		}
		return `">=` + writeSize(v) + `"`
	})

// durationUnits are in the order in which they follow each other.
var durationUnits = []struct {
	name string
	unit time.Duration
}{
	{"d", 24 * time.Hour}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}, {"ms", time.Millisecond},
}

func readDuration(text string) (time.Duration, flaw) {
	if m := fullWords.FindStringSubmatch(text); m != nil {
		return 0, flaw{why: "units are one letter", nearest: m[1] + m[2][:1]}
	}
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		return 0, flaw{why: "a duration needs a unit"}
	}
	if lower := strings.ToLower(text); lower != text {
		if _, fl := readDuration(lower); fl.why == "" {
			return 0, flaw{why: "units are small letters", nearest: lower}
		}
	}
	var sum float64
	rest, from := text, 0
	for rest != "" {
		m := partForm.FindStringSubmatch(rest)
		if m == nil {
			return 0, flaw{why: "this is no duration"}
		}
		i := from
		for i < len(durationUnits) && durationUnits[i].name != m[2] {
			i++
		}
		if i == len(durationUnits) {
			return 0, flaw{why: quote(m[2]) + " is no unit of time here"}
		}
		n, _ := strconv.ParseFloat(m[1], 64) // the form allows nothing else
		sum += n * float64(durationUnits[i].unit)
		rest, from = rest[len(m[0]):], i+1
	}
	if text == "" || sum > float64(100*365*24*time.Hour) {
		return 0, flaw{why: "this is no duration"}
	}
	return time.Duration(sum).Round(time.Millisecond), flaw{}
}

// writeDuration gives a duration in whole numbers: 36h are 1d12h.
func writeDuration(v time.Duration) string {
	var b strings.Builder
	for _, u := range durationUnits {
		if n := v / u.unit; n > 0 {
			b.WriteString(strconv.FormatInt(int64(n), 10) + u.name)
			v -= n * u.unit
		}
	}
	if b.Len() == 0 {
		return "0s"
	}
	return b.String()
}

// readDollars reads an amount of US dollars. Whether the currency must be
// named depends on who asks.
func readDollars(text string, bare bool) (float64, flaw) {
	amount := strings.TrimPrefix(text, "$")
	m := quantity.FindStringSubmatch(amount)
	if m == nil {
		return 0, flaw{why: "this is no amount of money", next: "write a number and USD, such as 20USD"}
	}
	v, err := strconv.ParseFloat(m[1], 64)
	switch {
	case m[2] == "" && !bare || amount != text:
		return 0, flaw{why: "an amount of money names its currency", nearest: m[1] + "USD"}
	case m[2] != "" && !strings.EqualFold(m[2], "USD"):
		return 0, flaw{why: "prices are in US dollars", next: "write a number and USD, such as 20USD"}
	case err != nil || v <= 0 || v > 1e7:
		return 0, flaw{why: "an amount is more than 0 and at most 10000000", next: "such as 20USD; leave the key out for no limit"}
	}
	return v, flaw{}
}

func writeDollars(v float64, unit string) string {
	if v == 0 {
		return ""
	}
	return strconv.FormatFloat(v, 'f', -1, 64) + unit
}

var moneyType = scalarType("money", "US dollars: 20USD", stringSchema(`^[0-9]+(\.[0-9]+)? ?[Uu][Ss][Dd]$`),
	func(_ *Field, text string) (float64, flaw) { return readDollars(text, false) },
	func(_ *Field, v float64) string { return writeDollars(v, "USD") })

var priceType = scalarType("price", "US dollars per hour: 1.50",
	func(*Field) schema {
		return schema{"oneOf": []any{schema{"type": "number", "exclusiveMinimum": 0},
			schema{"type": "string", "pattern": `^[0-9]+(\.[0-9]+)? ?[Uu][Ss][Dd]$`}}}
	},
	func(_ *Field, text string) (float64, flaw) { return readDollars(text, true) },
	func(_ *Field, v float64) string { return writeDollars(v, "") })

// ParseDuration reads a duration as profiles have it: 90m, 12h, 30d.
func ParseDuration(text string) (time.Duration, error) {
	v, fl := readDuration(text)
	switch {
	case fl.nearest != "":
		return 0, fmt.Errorf("%q: %s; did you mean %s?", text, fl.why, fl.nearest)
	case fl.why != "":
		return 0, fmt.Errorf("%q: %s; write a number and d, h, m or s, such as 30d", text, fl.why)
	}
	return v, nil
}

// ParseSize reads a size as profiles have it ("24GB", ">=24GB", "200GiB"), in
// bytes.
func ParseSize(text string) (int64, error) {
	v, fl := readSize(strings.TrimSpace(strings.TrimPrefix(text, ">=")))
	if fl.why == "" {
		return v, nil
	}
	next := fl.next
	if fl.nearest != "" {
		next = "did you mean " + fl.nearest + "?"
	}
	return 0, fmt.Errorf("%q: %s; %s", text, fl.why, next)
}
