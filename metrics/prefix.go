package metrics

import (
	"strings"

	"github.com/dlwb/dlwb/metrics/lexis"
	"github.com/dlwb/dlwb/metrics/loghead"
	"github.com/dlwb/dlwb/metrics/sense"
)

// unlabelled is the rank of a line that does not say which process printed it.
const unlabelled = -1

// namedRank is added to the ranks of sources that are told apart by a name
// alone: the first one to print comes first.
const namedRank = 1 << 20

// mostSources bounds the names of sources that are remembered.
const mostSources = 4096

// sources peels off what launchers put before a line to say which process
// printed it.
type sources struct {
	labelled bool // "3: " before a line was seen to be a rank
	names    map[source]int
	colour   colour // in which the present line begins
	mine     colour // of the host that counts, where two are told apart by that alone
	others   colour
}

// source is who prints under a name: docker compose tells containers apart by
// the colour of their names, too.
type source struct {
	name   string
	colour colour
}

// colour is what a control sequence says of the text behind it (SGR, ECMA-48),
// its parameters one behind the other; 0 is none.
type colour uint64

// colourOf is the colour that a line begins with.
func colourOf(line []byte) (c colour) {
	if len(line) < 3 || line[0] != 0x1b || line[1] != '[' {
		return 0
	}
	for _, b := range line[2:min(len(line), 24)] {
		if b == 'm' {
			return c
		}
		c = c*31 + colour(b)
	}
	return 0
}

// peel returns a line without the labels of its source, and the source's rank.
// tentative is true when the label may also be a step: "3: loss=…".
func (s *sources) peel(line string) (rest string, rank int, tentative bool) {
	rank = unlabelled
	for range 4 { // labels nest
		next, r, maybe := s.label(line)
		if len(next) == len(line) {
			break
		}
		if r != unlabelled && (rank == unlabelled || r > rank) {
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
	if rank == unlabelled {
		rank = loghead.RankBehind(line)
	}
	return line, rank, tentative
}

// roles are what a process is called that prints its number.
var roles = set(`rank gpu cuda proc process worker node host replica pod device local_rank global_rank localrank local rank: chain`)

// roleLabel reads "rank0 | ", "GPU 1: ", "Node[2] " and "(rank 3) " at i.
func roleLabel(line string, i int) (rest string, rank int, ok bool) {
	end := i
	for end < len(line) && end-i < 12 && (lexis.IsLetter(line[end])) {
		end++
	}
	if end == i || end >= len(line) {
		return line, unlabelled, false
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
		return line, unlabelled, false
	}
	behind := lexis.SkipBlanks(line, stop)
	if behind < len(line) && (strings.IndexByte("|>])", line[behind]) >= 0 || line[stop] == ':' && stop+1 < len(line) && line[stop+1] == ' ') && roles[strings.ToLower(line[i:end])] {
		return line[behind+1:], lexis.SmallInt(line[at:stop]), true
	}
	return line, unlabelled, false
}

func (s *sources) label(line string) (rest string, rank int, tentative bool) {
	i := lexis.SkipBlanks(line, 0)
	if i >= len(line) {
		return line, unlabelled, false
	}
	switch c := line[i]; {
	case c == '[':
		rest, rank = bracketLabel(line, i)
		return rest, rank, rank > 0 && lexis.IsDigit(line[i+1]) && !s.labelled && strings.HasPrefix(line[lexis.Digits(line, i+1):], "]: ")
	case c == '(':
		if rest, rank, ok := roleLabel(line, i+1); ok {
			return rest, rank, false
		}
		rest, rank = s.actorLabel(line, i)
		return rest, rank, false
	case lexis.IsDigit(c):
		end := lexis.Digits(line, i)
		if end-i <= 4 && strings.HasPrefix(line[end:], ": ") { // srun --label
			return line[end+2:], lexis.SmallInt(line[i:end]), !s.labelled
		}
	case lexis.IsLetter(c):
		if rest, rank, ok := roleLabel(line, i); ok {
			return rest, rank, false
		}
		rest, rank = s.wordLabel(line, i)
		return rest, rank, false
	}
	return line, unlabelled, false
}

// bracketLabel reads "[rank0]:", "[default1]:" (torchrun), "[1,0]<stdout>:"
// (mpirun), "[0]:" and "[Rank 0] ".
func bracketLabel(line string, i int) (string, int) {
	end := strings.IndexByte(line[i:], ']') + i
	if end <= i || end-i > 24 {
		return line, unlabelled
	}
	inside, after := line[i+1:end], line[end+1:]
	if _, rank, ok := strings.Cut(inside, ","); ok && strings.HasPrefix(after, "<std") {
		if named, ok := strings.CutPrefix(rank, "mpirank:"); ok { // SageMaker's [1,mpirank:0,algo-1]
			rank, _, _ = strings.Cut(named, ",")
		}
		if close := strings.Index(after, ">:"); close > 0 && lexis.AllDigits(rank) {
			return after[close+2:], lexis.SmallInt(rank)
		}
		return line, unlabelled
	}
	word := strings.TrimRight(inside, "0123456789")
	number := inside[len(word):]
	if number == "" {
		return line, unlabelled
	}
	colon := strings.HasPrefix(after, ":")
	word = strings.ToLower(strings.TrimSpace(word))
	switch {
	case strings.HasPrefix(after, "[") && word != "rank":
	case roles[strings.TrimRight(word, " -_:=#")]:
		return strings.TrimPrefix(after, ":"), lexis.SmallInt(number)
	case saysMore(strings.TrimRight(word, " -_:=#.")): // [Epoch 3]: is where the run is
	case colon && (word == "" || !strings.ContainsAny(word, " :/=[|")), word == "rank" || word == "default":
		return strings.TrimPrefix(after, ":"), lexis.SmallInt(number)
	}
	return line, unlabelled
}

// actorLabel reads Ray's "(RayTrainWorker pid=227, ip=10.0.2.255) ".
func (s *sources) actorLabel(line string, i int) (string, int) {
	end := strings.IndexByte(line[i:], ')') + i
	if end <= i || end-i > 120 || !strings.Contains(line[i:end], "pid=") {
		return line, unlabelled
	}
	return line[end+1:], s.named(source{name: line[i:end]})
}

// wordLabel reads "job-algo-1-h8q2d  | " (docker compose), "worker-1: ",
// "demo/0 ".
func (s *sources) wordLabel(line string, i int) (string, int) {
	end := i
	hasDigit, hasDash := false, false
	for end < len(line) && (lexis.IsKeyByte(line[end])) {
		hasDigit = hasDigit || lexis.IsDigit(line[end])
		hasDash = hasDash || line[end] == '-' || line[end] == '_'
		end++
	}
	word := line[i:end]
	if len(word) > longestName {
		return line, unlabelled
	}
	after := lexis.SkipBlanks(line, end)
	barred := after < len(line) && line[after] == '|' && after > end
	if barred && s.colour != 0 && !hasDigit && i == 0 && !saysMore(word) {
		return line[after+1:], s.named(source{word, s.colour})
	}
	if !hasDigit {
		return line, unlabelled
	}
	if hasDash && barred {
		if _, host, ok := strings.Cut(word, "algo-"); ok { // SageMaker counts its hosts from algo-1 on
			if n := lexis.Digits(host, 0); n > 0 {
				return line[after+1:], max(lexis.SmallInt(host[:n])-1, 0)
			}
		}
		return line[after+1:], s.named(source{word, s.colour})
	}
	if name, replica, ok := strings.Cut(word, "/"); ok && lexis.AllDigits(replica) && after > end && hasDash && unitWords[strings.ToLower(name)] == noUnit {
		return line[after:], lexis.SmallInt(replica)
	}
	return line, unlabelled
}

// saysMore reports whether a word before a bar says something of the line
// itself: its level, its split, what it counts or measures.
func saysMore(word string) bool {
	lower := strings.ToLower(word)
	return loghead.Levels[strings.ToUpper(word)] || splits[lower] != "" || unitWords[lower] != noUnit || sense.Of(lower) > never
}

// named is the rank of a source that has only a name.
func (s *sources) named(from source) int {
	rank, ok := s.names[from]
	if !ok {
		if s.names == nil || len(s.names) >= mostSources {
			s.names = map[source]int{}
		}
		rank = namedRank + len(s.names)
		from.name = strings.Clone(from.name)
		s.names[from] = rank
	}
	return rank
}
