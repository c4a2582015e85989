package tfevent

import (
	"encoding/binary"
	"iter"
	"math"
)

// wire is how a field of a protocol buffer is written.
type wire uint8

const (
	varint    wire = 0
	fixed64   wire = 1
	bytesWire wire = 2
	fixed32   wire = 5
)

// field is one field of a message.
type field struct {
	number uint64
	wire   wire
	value  uint64
	bytes  []byte
}

// uvarint reads a number of variable length; most have one byte.
func uvarint(b []byte) (uint64, int) {
	if len(b) > 0 && b[0] < 0x80 {
		return uint64(b[0]), 1
	}
	return binary.Uvarint(b)
}

// fields walks over a message of protocol buffers, until its end or the first
// thing that cannot be.
func fields(b []byte) iter.Seq[field] {
	return func(yield func(field) bool) {
		for len(b) > 0 {
			key, n := uvarint(b)
			if n <= 0 {
				return
			}
			b = b[n:]
			f := field{number: key >> 3, wire: wire(key & 7)}
			switch f.wire {
			case varint:
				f.value, n = uvarint(b)
			case fixed64:
				if n = 8; len(b) < n {
					return
				}
				f.value = binary.LittleEndian.Uint64(b)
			case fixed32:
				if n = 4; len(b) < n {
					return
				}
				f.value = uint64(binary.LittleEndian.Uint32(b))
			case bytesWire:
				size, m := uvarint(b)
				if m <= 0 || size > uint64(len(b)-m) {
					return
				}
				f.bytes, n = b[m:m+int(size)], m+int(size)
			default:
				return
			}
			if n <= 0 {
				return
			}
			b = b[n:]
			if !yield(f) {
				return
			}
		}
	}
}

// Types of tensors.
const (
	float32Type  = 1
	float64Type  = 2
	int32Type    = 3
	int64Type    = 9
	float16Type  = 19
	bfloat16Type = 14
)

// scalarTensor reads a TensorProto that holds one number: 1 dtype, 4
// tensor_content, 5 float_val, 6 double_val, 7 int_val, 10 int64_val, 13 half_val.
func scalarTensor(b []byte) (float64, bool) {
	dtype := uint64(0)
	var content []byte
	var v float64
	found := 0
	for f := range fields(b) {
		switch f.number {
		case 1:
			dtype = f.value
		case 4:
			content = f.bytes
		case 5, 6, 7, 10, 13:
			var n int
			v, n = tensorValue(f, dtype)
			found += n
		}
	}
	if found > 0 {
		return v, found == 1
	}
	return rawTensor(content, dtype)
}

// tensorValue reads one value of a tensor, and how many there are; they may be
// packed.
func tensorValue(f field, dtype uint64) (float64, int) {
	switch {
	case f.number == 5 && f.wire == fixed32:
		return float64(math.Float32frombits(uint32(f.value))), 1
	case f.number == 6 && f.wire == fixed64:
		return math.Float64frombits(f.value), 1
	case f.number == 5 && f.wire == bytesWire && len(f.bytes) >= 4:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(f.bytes))), len(f.bytes) / 4
	case f.number == 6 && f.wire == bytesWire && len(f.bytes) >= 8:
		return math.Float64frombits(binary.LittleEndian.Uint64(f.bytes)), len(f.bytes) / 8
	case f.wire == varint:
		return integer(f.value, f.number == 13, dtype), 1
	case f.wire == bytesWire && f.number != 5 && f.number != 6:
		v, n := binary.Uvarint(f.bytes)
		if n <= 0 {
			return 0, 0
		}
		count := 1
		for rest := f.bytes[n:]; len(rest) > 0; count++ {
			_, m := binary.Uvarint(rest)
			if m <= 0 {
				break
			}
			rest = rest[m:]
		}
		return integer(v, f.number == 13, dtype), count
	}
	return 0, 0
}

func integer(v uint64, half bool, dtype uint64) float64 {
	if half {
		if dtype == bfloat16Type {
			return float64(math.Float32frombits(uint32(v) << 16))
		}
		return float16(uint16(v))
	}
	return float64(int64(v))
}

// rawTensor reads a tensor whose numbers are bytes.
func rawTensor(b []byte, dtype uint64) (float64, bool) {
	switch {
	case dtype == float32Type && len(b) == 4:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(b))), true
	case dtype == float64Type && len(b) == 8:
		return math.Float64frombits(binary.LittleEndian.Uint64(b)), true
	case dtype == int32Type && len(b) == 4:
		return float64(int32(binary.LittleEndian.Uint32(b))), true
	case dtype == int64Type && len(b) == 8:
		return float64(int64(binary.LittleEndian.Uint64(b))), true
	case dtype == float16Type && len(b) == 2:
		return float16(binary.LittleEndian.Uint16(b)), true
	case dtype == bfloat16Type && len(b) == 2:
		return float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(b)) << 16)), true
	}
	return 0, false
}

// float16 is the value of a half-precision number (IEEE 754 binary16).
func float16(h uint16) float64 {
	sign := 1.0
	if h&0x8000 != 0 {
		sign = -1
	}
	exponent, fraction := int(h>>10&0x1f), float64(h&0x3ff)
	switch exponent {
	case 0:
		return sign * math.Ldexp(fraction, -24)
	case 0x1f:
		if fraction != 0 {
			return math.NaN()
		}
		return math.Inf(int(sign))
	}
	return sign * math.Ldexp(1+fraction/1024, exponent-15)
}
