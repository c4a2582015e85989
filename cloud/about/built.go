package about

// Repository is the option of providers whose image may be built from a Dockerfile.
func Repository[T any](place func(*T) *string) Option {
	return Option{Key: "machines.repository", Also: []string{"repository_name", "ecr_repository"},
		Doc: "With a Dockerfile as `machines.image`: the repository of ECR, in the account and region of the job, to which the image is pushed that is built from it here. " +
			"It has to be there; dlwb makes none.", Example: "team/charlm",
		Place: In(place)}
}

// Builds are the effects of a profile that names a repository; empty: it names none.
func Builds(repository string) []Effect {
	if repository == "" {
		return nil
	}
	return []Effect{{Kind: Runs, Unusual: true, Text: "what the Dockerfile of machines.image runs, in containers on this machine, by docker or podman"},
		{Kind: Sends, Unusual: true, Text: "the image that it makes, with what it copies of the code, to the repository " + repository + " of ECR"}}
}
