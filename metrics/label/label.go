// Package label knows what launchers and logs of containers write before a line to say which process
// printed it.
package label

import (
	"strings"

	"github.com/dlwb/dlwb/metrics/lexis"
	"github.com/dlwb/dlwb/metrics/loghead"
	"github.com/dlwb/dlwb/metrics/sense"
)

// None is the rank of a line that does not say which process printed it.
const None = -1

// Named is added to the ranks of sources that are told apart by a name
// alone: the first one to print comes first.
const Named = 1 << 20

// longest bounds the text of one name.
const longest = 64

// mostSources bounds the names of sources that are remembered.
const mostSources = 4096

// Sources peels off what launchers put before a line to say which process
// printed it.
type Sources struct {
	Counts   func(word string) bool // whether a word is for what counts: an epoch, a step
	Labelled bool                   // "3: " before a line was seen to be a rank
	Colour   Colour                 // in which the present line begins
	names    map[source]int
}

// source is who prints under a name: docker compose tells containers apart by
// the colour of their names, too.
type source struct {
	name   string
	colour Colour
}

// Colour is what a control sequence says of the text behind it (SGR, ECMA-48),
// its parameters one behind the other; 0 is none.
type Colour uint64

// ColourOf is the colour that a line begins with.
func ColourOf(line []byte) (c Colour) {
	if len(line) < 3 || line[0] != 0x1b || line[1] != '[' {
		return 0
	}
	for _, b := range line[2:min(len(line), 24)] {
		if b == 'm' {
			return c
		}
		c = c*31 + Colour(b)
	}
	return 0
}

// Peel returns a line without the labels of its source, and the source's rank.
// tentative is true when the label may also be a step: "3: loss=…".
func (s *Sources) Peel(line string) (rest string, rank int, tentative bool) {
	rank = None
	for range 4 { // labels nest
		next, r, maybe := s.label(line)
		if len(next) == len(line) {
			break
		}
		if r != None && (rank == None || r > rank) {
			rank, tentative = r, maybe
		}
		line = next
		if maybe {
			break
		}
	}
	if i := strings.Index(line, "]<std"); i > 0 && strings.HasSuffix(line, ">:") { // mpirun's next label, behind the line
		if open := strings.LastIndexByte(line[:i], '['); open >= 0 {
			line = line[:open]
		}
	}
	if rank == None {
		rank = loghead.RankBehind(line)
	}
	return line, rank, tentative
}

// roles are what a process is called that prints its number.
var roles = sense.Set(`rank gpu cuda proc process worker node host replica pod device local_rank global_rank localrank local rank: chain`)

// roleLabel reads "rank0 | ", "GPU 1: ", "Node[2] " and "(rank 3) " at i.
func roleLabel(line string, i int) (rest string, rank int, ok bool) {
	end := i
	for end < len(line) && end-i < 12 && (lexis.IsLetter(line[end])) {
		end++
	}
	if end == i || end >= len(line) {
		return line, None, false
	}
	at := end
	if strings.HasPrefix(line[at:], " [") {
		at++
	}
	if strings.IndexByte(" =:#-[", line[at]) >= 0 {
		at++
	}
	stop := lexis.Digits(line, at)
	if stop == at || stop-at > 4 || stop >= len(line) {
		return line, None, false
	}
	behind := lexis.SkipBlanks(line, stop)
	if behind < len(line) && (strings.IndexByte("|>])", line[behind]) >= 0 || line[stop] == ':' && stop+1 < len(line) && line[stop+1] == ' ') && roles[strings.ToLower(line[i:end])] {
		return line[behind+1:], lexis.SmallInt(line[at:stop]), true
	}
	return line, None, false
}

func (s *Sources) label(line string) (rest string, rank int, tentative bool) {
	i := lexis.SkipBlanks(line, 0)
	if i >= len(line) {
		return line, None, false
	}
	switch c := line[i]; {
	case c == '[':
		rest, rank = s.bracketLabel(line, i)
		return rest, rank, rank > 0 && lexis.IsDigit(line[i+1]) && !s.Labelled && strings.HasPrefix(line[lexis.Digits(line, i+1):], "]: ")
	case c == '(':
		if rest, rank, ok := roleLabel(line, i+1); ok {
			return rest, rank, false
		}
		rest, rank = s.actorLabel(line, i)
		return rest, rank, false
	case lexis.IsDigit(c):
		end := lexis.Digits(line, i)
		if end-i <= 4 && strings.HasPrefix(line[end:], ": ") { // srun --label
			return line[end+2:], lexis.SmallInt(line[i:end]), !s.Labelled
		}
	case lexis.IsLetter(c):
		if rest, rank, ok := roleLabel(line, i); ok {
			return rest, rank, false
		}
		rest, rank = s.wordLabel(line, i)
		return rest, rank, false
	}
	return line, None, false
}

// bracketLabel reads "[rank0]:", "[default1]:" (torchrun), "[1,0]<stdout>:"
// (mpirun), "[0]:" and "[Rank 0] ".
func (s *Sources) bracketLabel(line string, i int) (string, int) {
	end := strings.IndexByte(line[i:], ']') + i
	if end <= i || end-i > 24 {
		return line, None
	}
	inside, after := line[i+1:end], line[end+1:]
	if _, rank, ok := strings.Cut(inside, ","); ok && strings.HasPrefix(after, "<std") {
		if named, ok := strings.CutPrefix(rank, "mpirank:"); ok { // SageMaker's [1,mpirank:0,algo-1]
			rank, _, _ = strings.Cut(named, ",")
		}
		if close := strings.Index(after, ">:"); close > 0 && lexis.AllDigits(rank) {
			return after[close+2:], lexis.SmallInt(rank)
		}
		return line, None
	}
	word := strings.TrimRight(inside, "0123456789")
	number := inside[len(word):]
	if number == "" {
		return line, None
	}
	colon := strings.HasPrefix(after, ":")
	word = strings.ToLower(strings.TrimSpace(word))
	switch {
	case strings.HasPrefix(after, "[") && word != "rank":
	case roles[strings.TrimRight(word, " -_:=#")]:
		return strings.TrimPrefix(after, ":"), lexis.SmallInt(number)
	case s.saysMore(strings.TrimRight(word, " -_:=#.")): // [Epoch 3]: is where the run is
	case colon && (word == "" || !strings.ContainsAny(word, " :/=[|")), word == "rank" || word == "default":
		return strings.TrimPrefix(after, ":"), lexis.SmallInt(number)
	}
	return line, None
}

// actorLabel reads Ray's "(RayTrainWorker pid=227, ip=10.0.2.255) ".
func (s *Sources) actorLabel(line string, i int) (string, int) {
	end := strings.IndexByte(line[i:], ')') + i
	if end <= i || end-i > 120 || !strings.Contains(line[i:end], "pid=") {
		return line, None
	}
	return line[end+1:], s.Of(line[i:end])
}

// wordLabel reads "job-algo-1-h8q2d  | " (docker compose), "worker-1: ",
// "demo/0 ".
func (s *Sources) wordLabel(line string, i int) (string, int) {
	end := i
	hasDigit, hasDash := false, false
	for end < len(line) && (lexis.IsKeyByte(line[end])) {
		hasDigit = hasDigit || lexis.IsDigit(line[end])
		hasDash = hasDash || line[end] == '-' || line[end] == '_'
		end++
	}
	word := line[i:end]
	if len(word) > longest {
		return line, None
	}
	after := lexis.SkipBlanks(line, end)
	barred := after < len(line) && line[after] == '|' && after > end
	if barred && s.Colour != 0 && !hasDigit && i == 0 && !s.saysMore(word) {
		return line[after+1:], s.named(source{word, s.Colour})
	}
	if !hasDigit {
		return line, None
	}
	if hasDash && barred {
		if _, host, ok := strings.Cut(word, "algo-"); ok { // SageMaker counts its hosts from algo-1 on
			if n := lexis.Digits(host, 0); n > 0 {
				return line[after+1:], max(lexis.SmallInt(host[:n])-1, 0)
			}
		}
		return line[after+1:], s.named(source{word, s.Colour})
	}
	if name, replica, ok := strings.Cut(word, "/"); ok && lexis.AllDigits(replica) && after > end && hasDash && !s.Counts(strings.ToLower(name)) {
		return line[after:], lexis.SmallInt(replica)
	}
	return line, None
}

// saysMore reports whether a word before a bar says something of the line
// itself: its level, its split, what it counts or measures.
func (s *Sources) saysMore(word string) bool {
	lower := strings.ToLower(word)
	return loghead.Levels[strings.ToUpper(word)] || sense.Splits[lower] != "" || s.Counts(lower) || sense.Of(lower) > sense.Never
}

// Of is the rank of a source that has only a name.
func (s *Sources) Of(name string) int { return s.named(source{name: name}) }

func (s *Sources) named(from source) int {
	rank, ok := s.names[from]
	if !ok {
		if s.names == nil || len(s.names) >= mostSources {
			s.names = map[source]int{}
		}
		rank = Named + len(s.names)
		from.name = strings.Clone(from.name)
		s.names[from] = rank
	}
	return rank
}

// Name is how the lines of a process call it, where that is no number.
func (s *Sources) Name(rank int) (name string) {
	for from, r := range s.names {
		if r == rank {
			name = from.name
		}
	}
	return name
}
