package cloud

import (
	"encoding/json"
	"time"
)

// Lifetimes are seconds in JSON, as "lived_s".

// MarshalJSON writes the resource with its lifetime.
func (r Resource) MarshalJSON() ([]byte, error) {
	type plain Resource
	return json.Marshal(struct {
		plain
		Lived float64 `json:"lived_s"`
	}{plain(r), r.Lived.Seconds()})
}

// UnmarshalJSON reads what MarshalJSON has written.
func (r *Resource) UnmarshalJSON(b []byte) error {
	type plain Resource
	in := struct {
		*plain
		Lived float64 `json:"lived_s"`
	}{plain: (*plain)(r)}
	err := json.Unmarshal(b, &in)
	r.Lived = time.Duration(in.Lived * float64(time.Second))
	return err
}

// MarshalJSON writes the receipt with its lifetime.
func (r Receipt) MarshalJSON() ([]byte, error) {
	type plain Receipt
	return json.Marshal(struct {
		plain
		Lived float64 `json:"lived_s"`
	}{plain(r), r.Lived.Seconds()})
}

// UnmarshalJSON reads what MarshalJSON has written.
func (r *Receipt) UnmarshalJSON(b []byte) error {
	type plain Receipt
	in := struct {
		*plain
		Lived float64 `json:"lived_s"`
	}{plain: (*plain)(r)}
	err := json.Unmarshal(b, &in)
	r.Lived = time.Duration(in.Lived * float64(time.Second))
	return err
}

// Lived is how long something was there between two moments on record, of which the
// clock of this machine tells only so much: it may have been set back between them, and
// what was paid for never gave money back. A moment that is not known makes it 0.
func Lived(from, to time.Time) time.Duration {
	if from.IsZero() || to.IsZero() {
		return 0
	}
	return max(0, to.Sub(from))
}
