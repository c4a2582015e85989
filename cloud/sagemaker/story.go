package sagemaker

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sagemaker"
	"github.com/aws/aws-sdk-go-v2/service/sagemaker/types"

	"github.com/dlwb/dlwb/internal/job"
	"github.com/dlwb/dlwb/internal/pattern"
	"github.com/dlwb/dlwb/internal/units"
)

// terminal reports whether nothing of a job runs or will.
func terminal(j *sagemaker.DescribeTrainingJobOutput) bool {
	switch j.TrainingJobStatus {
	case types.TrainingJobStatusCompleted, types.TrainingJobStatusFailed, types.TrainingJobStatusStopped:
		return true
	}
	return false
}

// stops reports whether somebody or something ends a job before its own end.
func stops(j *sagemaker.DescribeTrainingJobOutput) bool {
	return j.TrainingJobStatus == types.TrainingJobStatusStopping || j.TrainingJobStatus == types.TrainingJobStatusStopped
}

// began is when the containers of a job began the last time; zero: they have not.
func began(j *sagemaker.DescribeTrainingJobOutput) (at time.Time) {
	for _, t := range j.SecondaryStatusTransitions {
		if t.Status == types.SecondaryStatusTraining {
			at = aws.ToTime(t.StartTime)
		}
	}
	return at
}

// storyOf is what became of a host, in order, told from one look. It is pure: the
// same look gives the same story to whoever looks. ends are how its ranks ended, as
// far as it has told; why is dlwb's note of a stop.
func storyOf(r ref, number int, j *sagemaker.DescribeTrainingJobOutput, why string, ends map[int]int) (all []job.Status) {
	add := func(s job.Status) { all = append(all, s) }
	begun := false
	for _, t := range j.SecondaryStatusTransitions {
		switch t.Status {
		case types.SecondaryStatusTraining:
			if !begun {
				add(job.Status{Time: aws.ToTime(t.StartTime), Kind: job.Started, Rank: -1})
			}
			begun = true
		case types.SecondaryStatusInterrupted:
			if begun {
				add(job.Status{Time: aws.ToTime(t.StartTime), Kind: job.Waiting, Rank: -1, Why: sentence("its spot machines were taken back", aws.ToString(t.StatusMessage))})
			}
			begun = false
		case types.SecondaryStatusRestarting:
			if begun {
				add(job.Status{Time: aws.ToTime(t.StartTime), Kind: job.Waiting, Rank: -1, Why: sentence("SageMaker starts it again", aws.ToString(t.StatusMessage))})
			}
			begun = false
		}
	}
	told := len(ends) > 0
	if said := endedBy(j, why, told); said != "" {
		add(job.Status{Time: aws.ToTime(j.TrainingEndTime), Kind: job.Stopping, Rank: -1, Why: said})
	}
	if !terminal(j) {
		return all
	}
	return append(all, endsOf(r.Ranks[number], j, ends)...)
}

// endedBy is why somebody else than the program ended a job; empty: nobody did, or
// the ranks tell.
func endedBy(j *sagemaker.DescribeTrainingJobOutput, why string, told bool) string {
	reason := brief(aws.ToString(j.FailureReason))
	switch {
	case j.SecondaryStatus == types.SecondaryStatusMaxRuntimeExceeded:
		return job.TimeLimit + "SageMaker ended the job after its time, " + units.Duration(time.Duration(limitsOf(j).run)*time.Second) + "; limits.lifetime asks for more"
	case j.SecondaryStatus == types.SecondaryStatusMaxWaitTimeExceeded:
		return job.TimeLimit + "no spot machines came, or they did not stay, within " + units.Duration(time.Duration(limitsOf(j).wait)*time.Second) + "; machines.max_wait asks for more"
	case stops(j) && why != "":
		return why
	case stops(j):
		return job.Cancelled + "the job was stopped in SageMaker, not by dlwb"
	case j.TrainingJobStatus != types.TrainingJobStatusFailed:
		return ""
	case strings.HasPrefix(reason, "InternalServerError") || strings.HasPrefix(reason, "CapacityError"):
		return job.Lost + sentence("SageMaker ended the job for a reason of its own", reason)
	case codeSaid(reason) == 137 && !told:
		return job.NoMemory + "a container was killed, as for lack of memory: " + reason
	case !told:
		return job.Failed + sentence("SageMaker says why the job failed", reason)
	}
	return ""
}

// brief is a reason in a line, without the middle of a long one: the toolkits put
// whole tracebacks into it.
func brief(reason string) string {
	const head, tail = 120, 280
	words := strings.Join(strings.Fields(reason), " ")
	if text := []rune(words); len(text) > head+tail+3 {
		return string(text[:head]) + " … " + string(text[len(text)-tail:])
	}
	return words
}

type limits struct{ run, wait int32 }

func limitsOf(j *sagemaker.DescribeTrainingJobOutput) limits {
	if j.StoppingCondition == nil {
		return limits{}
	}
	return limits{aws.ToInt32(j.StoppingCondition.MaxRuntimeInSeconds), aws.ToInt32(j.StoppingCondition.MaxWaitTimeInSeconds)}
}

// endsOf are the ends of the ranks of a host whose job is over, and its own.
func endsOf(ranks []int, j *sagemaker.DescribeTrainingJobOutput, ends map[int]int) (all []job.Status) {
	at, code := aws.ToTime(j.TrainingEndTime), 0
	switch j.TrainingJobStatus {
	case types.TrainingJobStatusFailed:
		code = codeSaid(aws.ToString(j.FailureReason))
	case types.TrainingJobStatusStopped:
		code = 143
	}
	for _, rank := range ranks {
		if n, known := ends[rank]; known {
			all = append(all, job.Status{Time: at, Kind: job.RankEnded, Rank: rank, Code: n, Signal: job.SignalOf(n)})
		} else if j.TrainingJobStatus == types.TrainingJobStatusCompleted {
			all = append(all, job.Status{Time: at, Kind: job.RankEnded, Rank: rank})
		}
	}
	return append(all, job.Status{Time: at, Kind: job.Ended, Rank: -1, Code: code})
}

var codeForm = pattern.New(`(?i)exit ?code:? *([0-9]{1,3})`)

// codeSaid is the exit code in SageMaker's words; 1 where they have none.
func codeSaid(reason string) int {
	all := codeForm.FindAllStringSubmatch(reason, -1)
	if len(all) == 0 {
		return 1
	}
	n, err := strconv.Atoi(all[len(all)-1][1])
	if err != nil || n == 0 || n > 255 {
		return 1
	}
	return n
}

// sentence joins what is said with a colon, without what is empty.
func sentence(head, said string) string {
	if said = strings.TrimSpace(said); said == "" {
		return head
	}
	return head + ": " + said
}

// stateOf is a story as a state.
func stateOf(story []job.Status, j *sagemaker.DescribeTrainingJobOutput) job.State {
	state := job.State{Phase: job.Running, Ranks: map[int]job.Exit{}}
	for _, s := range story {
		switch s.Kind {
		case job.Started:
			state.Begun = true
		case job.RankEnded:
			state.Ranks[s.Rank] = job.Exit{Code: s.Code, Signal: s.Signal, End: s.Time}
		case job.Ended:
			state.Phase = job.Over
		}
	}
	if !state.Begun && state.Phase == job.Running {
		state.Why = string(j.SecondaryStatus)
	}
	return state
}

// savedBy is what spot machines have saved, as a sentence; empty: nothing, or it is
// not known.
func savedBy(j *sagemaker.DescribeTrainingJobOutput) string {
	billed, trained := aws.ToInt32(j.BillableTimeInSeconds), aws.ToInt32(j.TrainingTimeInSeconds)
	if !aws.ToBool(j.EnableManagedSpotTraining) || trained <= 0 || billed > trained {
		return ""
	}
	return fmt.Sprintf("spot: %s of training, of which %s are billed: %.0f %% saved", units.Seconds(float64(trained)), units.Seconds(float64(billed)), 100*(1-float64(billed)/float64(trained)))
}
