package awsapi

// rule is what one of AWS's codes means. The words in braces are put in by
// Call.words.
type rule struct {
	kind  Kind
	cause string
	next  string
}

// anyStatus reports whether the code counts for what it says also where AWS
// sends it as a fault of its own, as it does with a want of capacity.
func (r rule) anyStatus() bool {
	return r.kind == NoCapacity || r.kind == Throttled || r.kind == Unknown
}

const (
	nextUnknown    = "dlwb looks for what became of it; by hand: aws ec2 describe-instances --region {region} --filters Name=tag-key,Values=dlwb:cluster; is AWS itself well? https://health.aws.amazon.com/health/status"
	nextBadRequest = "https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html explains {code}"
	nextLogin      = "aws sts get-caller-identity{profile}; then log in again: aws sso login{profile}, or put new keys in place by aws configure{profile}"
	nextSupport    = "https://console.aws.amazon.com/support/home"
	nextClock      = "set the clock: timedatectl set-ntp true (macOS: sudo sntp -sS time.apple.com)"
	nextZones      = "aws ec2 describe-instance-type-offerings --location-type availability-zone --filters Name=instance-type,Values={type} --region {region}"
	nextPlace      = "another zone or region (machines.region takes several), another type, fewer machines, or later"
	nextMine       = "aws ec2 describe-instances --region {region} --filters Name=instance-state-name,Values=pending,running --query \"Reservations[].Instances[].[InstanceId,InstanceType,Tags]\""
	nextSlow       = "wait a minute and try again; another program may be polling AWS with this account"
)

// rules are the codes that a person may meet, with what they mean here. The
// meanings are those of AWS's list of error codes.
var rules = map[string]rule{
	// No capacity: AWS has none there now.
	"InsufficientInstanceCapacity":         {NoCapacity, "AWS has no room for {machines} in {place} right now; the quota and the profile are fine", nextPlace},
	"InsufficientHostCapacity":             {NoCapacity, "AWS has no dedicated host for {machines} in {place} right now; the quota and the profile are fine", nextPlace},
	"InsufficientCapacity":                 {NoCapacity, "AWS has no room for {machines} in {place} right now; the quota and the profile are fine", nextPlace},
	"UnfulfillableCapacity":                {NoCapacity, "AWS has no room for {machines} in {place} right now; the quota and the profile are fine", nextPlace},
	"InsufficientReservedInstanceCapacity": {NoCapacity, "the reservation has no room for {machines} in {place} right now", "aws ec2 describe-capacity-reservations --region {region}; or launch without a reservation"},
	"ReservationCapacityExceeded":          {NoCapacity, "the capacity reservation is used up: {machines} don't fit into it in {place}", "aws ec2 describe-capacity-reservations --region {region}"},
	"InsufficientAddressCapacity":          {NoCapacity, "AWS has no public addresses left in {place} right now", nextPlace},
	"InsufficientVolumeCapacity":           {NoCapacity, "AWS has no room for disks in {place} right now", nextPlace},
	"SpotMaxPriceTooLow":                   {NoCapacity, "the spot price of {thetype} in {place} is above the highest price that was offered", "aws ec2 describe-spot-price-history --instance-types {type} --product-descriptions Linux/UNIX --max-items 6 --region {region}; raise max_price, or leave it out"},
	"InsufficientFreeAddressesInSubnet":    {NoCapacity, "the subnet in {place} has too few free addresses for {machines}", "aws ec2 describe-subnets --region {region} --query \"Subnets[].[SubnetId,AvailabilityZone,AvailableIpAddressCount]\"; name a larger one in machines.subnet"},

	// Quota: of the account, in the whole region.
	"VcpuLimitExceeded":            {NoQuota, "the account's quota is too small: {machines} need {vcpus} in {region}", "{raise}"},
	"MaxSpotInstanceCountExceeded": {NoQuota, "the account's spot quota is too small: {machines} need {vcpus} in {region}", "{raise}"},
	"InstanceLimitExceeded":        {NoQuota, "the account may not run so many {type} in {region}: {says}", "{raise}"},
	"MaxFleetCountExceeded":        {NoQuota, "the account has too many fleets in {region}", "https://console.aws.amazon.com/servicequotas/home/services/ec2/quotas"},
	"VolumeLimitExceeded":          {NoQuota, "the account's quota for disk space in {region} is used up", "aws service-quotas list-service-quotas --service-code ebs --region {region}; or a smaller machines.disk"},
	"MaxIOPSLimitExceeded":         {NoQuota, "the account's quota for disk operations a second in {region} is used up", "aws service-quotas list-service-quotas --service-code ebs --region {region}"},
	"AddressLimitExceeded":         {NoQuota, "the account's quota for elastic addresses in {region} is used up (5 by default)", "aws ec2 describe-addresses --region {region}; release one, or: aws service-quotas request-service-quota-increase --service-code ec2 --quota-code L-0263D0A3 --desired-value 10 --region {region}"},
	"SecurityGroupLimitExceeded":   {NoQuota, "the account's quota for security groups in {region} is used up", "aws ec2 describe-security-groups --region {region} --query \"SecurityGroups[].[GroupId,GroupName]\"; dlwb gc removes dlwb's own"},
	"RulesPerSecurityGroupLimitExceeded": {NoQuota, "the security group {id} has as many rules as it may have",
		"aws ec2 describe-security-group-rules --filters Name=group-id,Values={id} --region {region}"},
	"PlacementGroupLimitExceeded": {NoQuota, "the account's quota for placement groups in {region} is used up", "aws ec2 describe-placement-groups --region {region}; dlwb gc removes dlwb's own"},
	"ResourceLimitExceeded":       {NoQuota, "a quota of the account in {region} is used up: {says}", "https://console.aws.amazon.com/servicequotas/home"},

	// Not offered: there it never works.
	"Unsupported":                         {NotOffered, "{place} does not offer {machines} in this way: {says}", nextZones},
	"UnsupportedHibernationConfiguration": {NotOffered, "{thetype} can't hibernate in {place}: {says}", nextZones},

	// No permission.
	"UnauthorizedOperation": {NoPermission, "these credentials have no permission for {action}", "docs/aws.md has the least policy"},
	"AccessDenied":          {NoPermission, "these credentials have no permission for {action}", "docs/aws.md has the least policy"},
	"AccessDeniedException": {NoPermission, "these credentials have no permission for {action}", "docs/aws.md has the least policy"},
	"NotAuthorized":         {NoPermission, "these credentials have no permission for {action}", "docs/aws.md has the least policy"},
	"AuthFailure.ServiceLinkedRoleCreationNotPermitted": {NoPermission, "the account has never used spot machines, and these credentials may not make the role that they need", "an administrator runs once: aws iam create-service-linked-role --aws-service-name spot.amazonaws.com"},
	"UnrecognizedClientException":                       {NoCredentials, "AWS does not know these credentials, or they are not valid in {region}", nextLogin},

	// No credentials, or none that count.
	"AuthFailure":                {NoCredentials, "AWS does not accept these credentials in {region}: they are wrong, or the account has not enabled this region", "aws sts get-caller-identity{profile}; aws account get-region-opt-status --region-name {region}"},
	"InvalidClientTokenId":       {NoCredentials, "AWS does not know this access key, or it is not valid in {region}: it was deleted or switched off, or the region is not enabled", nextLogin},
	"MissingAuthenticationToken": {NoCredentials, "the call was not signed: no credentials were used", Login},
	"SignatureDoesNotMatch":      {NoCredentials, "the secret key does not belong to the access key, or the clock of this machine is wrong", nextLogin},
	"IncompleteSignature":        {NoCredentials, "the signature of the call is not complete: the credentials are malformed", nextLogin},
	"InvalidSignatureException":  {NoCredentials, "the secret key does not belong to the access key, or the clock of this machine is wrong", nextLogin},
	"ExpiredToken":               {NoCredentials, "the session of these credentials has expired", "aws sso login{profile}, or new session keys"},
	"ExpiredTokenException":      {NoCredentials, "the session of these credentials has expired", "aws sso login{profile}, or new session keys"},
	"RequestExpired":             {NoCredentials, "AWS takes the call for an old one: the clock of this machine is wrong, or the session has expired", nextClock + "; then aws sso login{profile}"},
	"OptInRequired":              {NoPermission, "the account is not signed up for this: {says}", "open the page that AWS names, or enable the region: aws account enable-region --region-name {region}"},
	"PendingVerification":        {NoPermission, "AWS is still verifying this account; that can take up to 4 hours", "wait for AWS's mail; after 4 hours: " + nextSupport},
	"Blocked":                    {NoPermission, "AWS has blocked this account", nextSupport},
	"AccountDisabled":            {NoPermission, "this AWS account is disabled", nextSupport},

	// Too many calls.
	"RequestLimitExceeded":     {Throttled, "AWS takes no more calls of this account for the moment ({action} in {region})", nextSlow},
	"Throttling":               {Throttled, "AWS takes no more calls of this account for the moment ({action} in {region})", nextSlow},
	"ThrottlingException":      {Throttled, "AWS takes no more calls of this account for the moment ({action} in {region})", nextSlow},
	"TooManyRequestsException": {Throttled, "AWS takes no more calls of this account for the moment ({action} in {region})", nextSlow},
	"EC2ThrottledException":    {Throttled, "AWS takes no more calls of this account for the moment ({action} in {region})", nextSlow},

	// Bad configuration: images.
	"InvalidAMIID.NotFound":    {BadRequest, "there is no image {theid} in {region}, or it is not shared with this account; an image has another id in every region", "machines.image: pytorch finds the right one in each region; or aws ec2 describe-images --image-ids {id} --region {region}"},
	"InvalidAMIID.Unavailable": {BadRequest, "the image {theid} in {region} is no longer, or not yet, available", "machines.image: pytorch finds the newest; or aws ec2 describe-images --image-ids {id} --region {region}"},
	"InvalidAMIID.Malformed":   {BadRequest, "{theid} is no image id (ami-…)", "machines.image in the profile: an id, or a name such as pytorch"},

	// Bad configuration: networks.
	"VPCIdNotSpecified":        {BadRequest, "there is no default VPC in {region}, so a subnet must be named", "aws ec2 create-default-vpc --region {region}; or machines.subnet in the profile"},
	"DefaultVpcDoesNotExist":   {BadRequest, "there is no default VPC in {region}, so a subnet must be named", "aws ec2 create-default-vpc --region {region}; or machines.subnet in the profile"},
	"MissingInput":             {BadRequest, "there is no default subnet in {place}, so a subnet must be named", "aws ec2 create-default-subnet --availability-zone {place}; or machines.subnet in the profile"},
	"InvalidSubnetID.NotFound": {BadRequest, "there is no subnet {theid} in {region}", "aws ec2 describe-subnets --region {region} --query \"Subnets[].[SubnetId,AvailabilityZone]\"; see machines.subnet"},
	"InvalidVpcID.NotFound":    {BadRequest, "there is no VPC {theid} in {region}", "aws ec2 describe-vpcs --region {region}"},
	"InvalidSubnet":            {BadRequest, "the subnet can't be used: {says}", "aws ec2 describe-subnets --region {region}; see machines.subnet"},

	// Bad configuration: the rest.
	"InvalidParameterValue":       {BadRequest, "AWS does not take a value of the request ({action}): {says}", "change what it names in the profile: dlwb plan shows all of it"},
	"InvalidParameterCombination": {BadRequest, "parts of the request don't go together ({action}): {says}", "change what it names in the profile: dlwb plan shows all of it"},
	"InvalidParameter":            {BadRequest, "AWS does not take a value of the request ({action}): {says}", "change what it names in the profile: dlwb plan shows all of it"},
	"MissingParameter":            {BadRequest, "the request lacks something ({action}): {says}", "change what it names in the profile: dlwb plan shows all of it"},
	"ValidationError":             {BadRequest, "AWS does not take a value of the request ({action}): {says}", "change what it names in the profile: dlwb plan shows all of it"},
	"InvalidInstanceType":         {BadRequest, "there is no instance type {type} in {region}", "dlwb offers --provider ec2 --region {region}"},
	"InvalidBlockDeviceMapping":   {BadRequest, "the disk does not fit the image: {says}", "a larger machines.disk: the root disk is at least as large as the image's"},
	"InvalidIamInstanceProfileArn.Malformed": {BadRequest, "the instance profile does not exist, or its name is wrong: {says}",
		"aws iam list-instance-profiles --query \"InstanceProfiles[].InstanceProfileName\""},
	"UnsupportedOperation":   {BadRequest, "AWS can't do {action} with {thetype} in {place} in this way: {says}", nextZones},
	"InvalidZone":            {BadRequest, "the zone {place} does not exist for this account", "aws ec2 describe-availability-zones --region {region}"},
	"InvalidAction":          {BadRequest, "the AWS endpoint does not know {action}", "AWS_ENDPOINT_URL points to something that is not all of EC2"},
	"OperationNotPermitted":  {BadRequest, "AWS does not allow {action} on {theid}: {says}", "look for termination protection: aws ec2 describe-instance-attribute --attribute disableApiTermination --instance-id {id} --region {region}"},
	"IncorrectInstanceState": {BadRequest, "{theid} is in a state in which {action} is not possible: {says}", "aws ec2 describe-instances --instance-ids {id} --region {region} --query \"Reservations[].Instances[].State\""},
	"IncorrectState":         {BadRequest, "{theid} is in a state in which {action} is not possible: {says}", "wait a minute and try again"},

	// Mismatch.
	"IdempotentParameterMismatch": {Mismatch, "the client token of this launch was used before with other parameters; nothing new was made", "dlwb down, which finds what the first one made; by hand: " + nextMine},

	// Not found.
	"InvalidInstanceID.NotFound":    {NotFound, "there is no instance {theid} in {region}, or it is too new to be seen", "aws ec2 describe-instances --instance-ids {id} --region {region}"},
	"InvalidKeyPair.NotFound":       {NotFound, "there is no key pair {theid} in {region}", "aws ec2 describe-key-pairs --region {region}"},
	"InvalidGroup.NotFound":         {NotFound, "there is no security group {theid} in {region}", "aws ec2 describe-security-groups --region {region}"},
	"InvalidGroupId.Malformed":      {BadRequest, "{theid} is no security group id (sg-…)", "aws ec2 describe-security-groups --region {region}"},
	"InvalidPlacementGroup.Unknown": {NotFound, "there is no placement group {theid} in {region}", "aws ec2 describe-placement-groups --region {region}"},
	"NoSuchResourceException":       {NotFound, "AWS has no such record ({action}): {says}", nextBadRequest},

	// Exists.
	"InvalidGroup.Duplicate":          {Exists, "there is already a security group {theid} in {region}", "aws ec2 describe-security-groups --region {region} --filters Name=group-name,Values={id}"},
	"InvalidKeyPair.Duplicate":        {Exists, "there is already a key pair {theid} in {region}", "aws ec2 describe-key-pairs --key-names {id} --region {region}"},
	"InvalidPlacementGroup.Duplicate": {Exists, "there is already a placement group {theid} in {region}", "aws ec2 describe-placement-groups --group-names {id} --region {region}"},
	"InvalidPermission.Duplicate":     {Exists, "the security group {theid} has this rule already", "aws ec2 describe-security-group-rules --filters Name=group-id,Values={id} --region {region}"},

	// In use.
	"DependencyViolation":         {InUse, "{theid} is still used by something else in {region}; after a termination that lasts some minutes", "aws ec2 describe-network-interfaces --region {region} --filters Name=group-id,Values={id}; then dlwb down again"},
	"InvalidGroup.InUse":          {InUse, "the security group {theid} is still used by a machine or by another group in {region}", "aws ec2 describe-network-interfaces --region {region} --filters Name=group-id,Values={id}; then dlwb down again"},
	"InvalidPlacementGroup.InUse": {InUse, "the placement group {theid} still has machines in it in {region}", "aws ec2 describe-instances --region {region} --filters Name=placement-group-name,Values={id}; then dlwb down again"},
	"VolumeInUse":                 {InUse, "the volume {theid} is still attached to a machine in {region}", "aws ec2 describe-volumes --volume-ids {id} --region {region}; then dlwb down again"},

	// Doubt: the call may have been carried out.
	"InternalError":      {Unknown, "AWS itself failed at {action} ({code}){doubt}", nextUnknown},
	"InternalFailure":    {Unknown, "AWS itself failed at {action} ({code}){doubt}", nextUnknown},
	"ServerInternal":     {Unknown, "AWS itself failed at {action} ({code}){doubt}", nextUnknown},
	"Unavailable":        {Unknown, "AWS is overloaded and did not finish {action} ({code}){doubt}", nextUnknown},
	"ServiceUnavailable": {Unknown, "AWS is overloaded and did not finish {action} ({code}){doubt}", nextUnknown},
	"RequestTimeout":     {Unknown, "the call took too long to arrive at AWS ({code}){doubt}", nextUnknown},
}

// endings are for the many codes that say with their last word what they mean.
var endings = []struct {
	suffix string
	rule
}{
	{".NotFound", rule{NotFound, "AWS does not find what {action} names ({code}): {says}", nextBadRequest}},
	{".Duplicate", rule{Exists, "something of that name exists already ({code}): {says}", nextBadRequest}},
	{".InUse", rule{InUse, "something else still needs it ({code}): {says}", "try again in some minutes"}},
	{"LimitExceeded", rule{NoQuota, "a quota of the account in {region} is used up ({code}): {says}", "https://console.aws.amazon.com/servicequotas/home/services/ec2/quotas"}},
}
