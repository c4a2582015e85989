package hostclaim

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/fxamacker/cbor/v2"
)

const (
	// RequestMost bounds a request.
	RequestMost = 64 << 10
	// AnswerMost bounds an answer, with what a login shell prints around it.
	AnswerMost = 256 << 10
)

// Mark is the line that an answer follows. It holds two words that were made for
// this one question, so that nothing else that is printed there is taken for it.
func Mark(first, second string) string {
	return "\n\x01" + Report + " " + first + second + " \n"
}

// Report is what a mark begins with, behind a line end and \001.
const Report = "dlwb-host"

var decoding, decodingErr = cbor.DecOptions{MaxNestedLevels: 8, MaxArrayElements: 4096, MaxMapPairs: 256}.DecMode()

// Encode is a request or an answer in bytes.
func Encode(v any) ([]byte, error) { return cbor.Marshal(v) }

// ReadRequest reads a request, which ends with the input or before.
func ReadRequest(in io.Reader) (r Request, err error) {
	return r, decode(io.LimitReader(in, RequestMost), &r)
}

// FindAnswer finds the answer behind its mark in what a host has printed.
// ErrNoAnswer: there is no mark.
func FindAnswer(printed []byte, mark string) (a Answer, err error) {
	_, rest, found := bytes.Cut(printed, []byte(mark))
	if !found {
		return a, ErrNoAnswer
	}
	if err := decode(bytes.NewReader(rest), &a); err != nil {
		return Answer{}, fmt.Errorf("its answer can't be read: %w", err)
	}
	return a, nil
}

// ErrNoAnswer says that nothing was answered.
var ErrNoAnswer = errors.New("no answer")

func decode(in io.Reader, v any) error {
	if decodingErr != nil {
		return decodingErr
	}
	return decoding.NewDecoder(in).Decode(v)
}
