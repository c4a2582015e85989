package ui

import (
	"github.com/dlwb/dlwb/workbench"
)

// PlanView is a plan as the screen shows it.
type PlanView = workbench.Plan

// CodePlan is what a plan would copy to the nodes.
type CodePlan = workbench.CodePlan
