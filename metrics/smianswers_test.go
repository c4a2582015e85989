package metrics

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/metrics/smi"
)

// answered writes what an answer says: GPUs, processes, error.
func answered(a smi.Answer) string {
	var all []string
	for _, g := range a.GPUs {
		all = append(all, gpuLine(g))
	}
	for _, p := range a.Apps {
		all = append(all, fmt.Sprintf("process %d %s %s", p.PID, p.Name, shown(p.Memory)))
	}
	if a.Error != smi.NoError {
		all = append(all, "error "+string(a.Error))
	}
	return strings.Join(all, "\n")
}

// dmonCSV is "nvidia-smi dmon --format csv -c 2" with two GPUs.
const dmonCSV = `#gpu, pwr, gtemp, mtemp, sm, mem, enc, dec, jpg, ofa, mclk, pclk
#Idx, W, C, C, %, %, %, %, %, %, MHz, MHz
0, 71, 44, -, 12, 1, 0, 0, 0, 0, 6250, 1710
1, 30, 40, -, 0, 0, 0, 0, 0, 0, 405, 210
0, 72, 45, -, 13, 1, 0, 0, 0, 0, 6250, 1710
1, 31, 40, -, 0, 0, 0, 0, 0, 0, 405, 210
`

// oldSections and newSections are "nvidia-smi -q" with the sections that are read and
// some of those that are like them.
const (
	oldSections = `
==============NVSMI LOG==============

Timestamp                           : Wed Jun 28 11:21:36 2017
Driver Version                      : 418.67
CUDA Version                        : 10.1

Attached GPUs                       : 2
GPU 00000000:00:1E.0
    Product Name                    : Tesla V100-SXM2-16GB
    FB Memory Usage
        Total                       : 16160 MiB
        Used                        : 15230 MiB
        Free                        : 930 MiB
    BAR1 Memory Usage
        Total                       : 16384 MiB
        Used                        : 2 MiB
    Utilization
        Gpu                         : 97 %
        Memory                      : 40 %
    Temperature
        GPU Current Temp            : 61 C
        GPU Shutdown Temp           : 90 C
    Power Readings
        Power Management            : Supported
        Power Draw                  : 288.31 W
        Power Limit                 : 300.00 W
        Enforced Power Limit        : 280.00 W
    Processes
        Process ID                  : 4711
            Type                    : C
            Name                    : python
            Used GPU Memory         : 15220 MiB

GPU 00000000:00:1F.0
    Product Name                    : Tesla V100-SXM2-16GB
    FB Memory Usage
        Total                       : 16160 MiB
        Used                        : 0 MiB
    Utilization
        Gpu                         : N/A
    Temperature
        GPU Current Temp            : 36 C
    Power Readings
        Power Draw                  : 41.77 W
        Power Limit                 : 300.00 W
    Processes                       : None
`
	newSections = `
==============NVSMI LOG==============

Timestamp                                              : Sat May  9 03:38:32 2026
Driver Version                                         : 590.48.01
CUDA Version                                           : 13.1

Attached GPUs                                          : 1
GPU 00000000:00:09.0
    Product Name                                       : NVIDIA H100 80GB HBM3
    MIG Mode
        Current                                        : Enabled
        Pending                                        : Enabled
    MIG Device
        Index                                          : 0
        GPU Instance ID                                : 2
        FB Memory Usage
            Total                                      : 6184 MiB
            Used                                       : 0 MiB
    FB Memory Usage
        Total                                          : 81559 MiB
        Reserved                                       : 624 MiB
        Used                                           : 11026 MiB
        Free                                           : 69909 MiB
    Conf Compute Protected Memory Usage
        Total                                          : 0 MiB
        Used                                           : 0 MiB
    Utilization
        GPU                                            : N/A
        Memory                                         : N/A
    Temperature
        GPU Current Temp                               : 52 C
        GPU T.Limit Temp                               : 30 C
        Memory Current Temp                            : 61 C
    GPU Power Readings
        Average Power Draw                             : 430.05 W
        Instantaneous Power Draw                       : 432.11 W
        Current Power Limit                            : 700.00 W
        Max Power Limit                                : 700.00 W
    GPU Memory Power Readings
        Average Power Draw                             : 80.10 W
        Instantaneous Power Draw                       : 81.10 W
    Processes
        GPU instance ID                                : 2
        Compute instance ID                            : 0
        Process ID                                     : 21180
            Type                                       : C
            Name                                       : /root/tools/memhog
            Used GPU Memory                            : 2296 MiB
        GPU instance ID                                : 2
        Compute instance ID                            : 0
        Process ID                                     : 21181
            Type                                       : C
            Name                                       : python3 train.py
            Used GPU Memory                            : Not available in WDDM driver model
`
	processTable = `+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 590.48.01              Driver Version: 590.48.01      CUDA Version: 13.1     |
+-----------------------------------------+------------------------+----------------------+
|   0  NVIDIA H100 80GB HBM3          On  |   00000000:00:09.0 Off |                   On |
| N/A   52C    P0            432W /  700W |   11069MiB /  81559MiB |     N/A      Default |
|                                         |                        |              Enabled |
+-----------------------------------------+------------------------+----------------------+
| MIG devices:                                                                            |
| GPU  GI  CI  MIG |              Memory-Usage |        Vol|        Shared                |
|  0    2   0   0  |           11026MiB /  6184MiB    | 16      0 |  1   0    1    0    0 |
+------------------+----------------------------------+-----------+-----------------------+
| Processes:                                                                              |
|  GPU   GI   CI              PID   Type   Process name                        GPU Memory |
|        ID   ID                                                               Usage      |
|=========================================================================================|
|    0    2    0            21180      C   /root/tools/memhog                     2296MiB |
|    0    2    0            21198    C+G   NVIDIA Share.exe                      N/A      |
+-----------------------------------------------------------------------------------------+
`
)

// smiAnswers are what nvidia-smi of several drivers answers, and what is read.
var smiAnswers = map[string]struct{ text, want string }{
	"other fields": {"timestamp, name, pci.bus_id, driver_version, pstate, temperature.gpu, utilization.gpu [%], utilization.memory [%], memory.total [MiB], memory.free [MiB], memory.used [MiB]\n2024/01/02 03:04:05.678, NVIDIA L4, 00000000:00:03.0, 535.161.07, P0, 61, 88 %, 40 %, 23034 MiB, 10011 MiB, 12571 MiB\n",
		"0|NVIDIA L4|88 12571/23034 61 -/-"},
	"a lost GPU among others": {"index, name, utilization.gpu [%], memory.used [MiB]\n0, NVIDIA A100-SXM4-80GB, 12 %, 100 MiB\n1, [GPU is lost], [GPU is lost], [GPU is lost]\n",
		"0|NVIDIA A100-SXM4-80GB|12 100/- - -/-\n1|[GPU is lost]|- -/- - -/-\nerror gpu_lost"},
	"words for nothing":     {"0, Quadro K620, [Not Supported], 5, 2000, 41, [N/A], [Insufficient Permissions]\n1, Quadro K620, [Unknown Error], [Requires reset], 2000, ERR!, [Not Found], N/A\n", "0|Quadro K620|- 5/2000 41 -/-\n1|Quadro K620|- -/2000 - -/-"},
	"unified memory":        {"0, NVIDIA GB10, 96, [N/A], [N/A], 64, 60.11, [N/A]\n", "0|NVIDIA GB10|96 -/- 64 60.11/-"},
	"a handle that is gone": {"Unable to determine the device handle for GPU0: 0000:3B:00.0: Unknown Error\nNo devices were found\n", "error gpu_lost"},
	"fell off":              {"Unable to determine the device handle for GPU 0000:3B:00.0: GPU is lost.  Reboot the system to recover this GPU\n", "error gpu_lost"},
	"mismatch":              {"Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 550.54\n", "error driver_library_mismatch"},
	"WSL":                   {"Failed to initialize NVML: GPU access blocked by the operating system\nFailed to properly shut down NVML: GPU access blocked by the operating system\n", "error no_permission"},
	"no library":            {"NVIDIA-SMI couldn't find libnvidia-ml.so library in your system. Please make sure that the NVIDIA Display Driver is properly installed and present in your system.\nPlease also try adding directory that contains libnvidia-ml.so to your system PATH.\n", "error not_installed"},
	"no driver":             {"NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is installed and running.\n\n", "error driver_not_loaded"},
	"busybox":               {"sh: nvidia-smi: not found\n", "error not_installed"},
	"zsh":                   {"zsh: command not found: nvidia-smi\n", "error not_installed"},
	// A GPU whose memory is the machine's (GB10) says so where the memory stands.
	"unified memory, as a table": {`+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 580.95.05              Driver Version: 580.95.05      CUDA Version: 13.0     |
+-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|
|   0  NVIDIA GB10                    On  |   0000000F:01:00.0 Off |                  N/A |
| N/A   41C    P8              4W /  N/A  | Not Supported          |      3%      Default |
|                                         |                        |                  N/A |
+-----------------------------------------+------------------------+----------------------+
| Processes:                                                                              |
|    0   N/A  N/A            2467      G   /usr/lib/xorg/Xorg                       18MiB |
+-----------------------------------------------------------------------------------------+
`, "0|NVIDIA GB10|3 -/- 41 4/-\nprocess 2467 /usr/lib/xorg/Xorg 18"},
	"a table of little":             {"+------+\n| NVIDIA-SMI 415.27       Driver Version: 415.27       CUDA Version: 10.0     |\n|   0  GeForce GT 640      Off  | 00000000:01:00.0 N/A |                  N/A |\n| 30%   30C    P0    N/A /  N/A |      0MiB /  1999MiB |     N/A      Default |\n+-----+\n", "0|GeForce GT 640|- 0/1999 30 -/-"},
	"dmon that is not supported":    {"Not supported on the device(s)\nFailed to process command line\n", "error not_supported"},
	"an old driver":                 {"Field \"memory.reserved\" is not a valid field to query.\n\n", "error bad_field"},
	"a list":                        {"GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-0a1b)\n  MIG 3g.40gb     Device  0: (UUID: MIG-0a1b)\nGPU 1: NVIDIA H100 80GB HBM3 (UUID: GPU-0a1c)\n", "0|NVIDIA H100 80GB HBM3|- -/- - -/-\n1|NVIDIA H100 80GB HBM3|- -/- - -/-"},
	"dmon with dates":               {"#Date       Time        gpu    pwr  gtemp  mtemp     sm    mem     fb   bar1\n#YYYYMMDD   HH:MM:SS    Idx      W      C      C      %      %     MB     MB\n 20240102   03:04:05      0     71     44      -     12      1   1043      5\n 20240102   03:04:05      1      -     40      -      -      -      3      5\n", "0||12 1043/- 44 71/-\n1||- 3/- 40 -/-"},
	"dmon as CSV":                   {"#gpu, pwr, gtemp, mtemp, sm, mem, enc, dec\n0, 71, 44, -, 12, 1, 0, 0\n", "0||12 -/- 44 71/-"},
	"dmon as CSV, twice two GPUs":   {dmonCSV, "0||12 -/- 44 71/-\n1||0 -/- 40 30/-\n0||13 -/- 45 72/-\n1||0 -/- 40 31/-"},
	"dmon as CSV without the marks": {strings.ReplaceAll(dmonCSV, "#", ""), "0||12 -/- 44 71/-\n1||0 -/- 40 30/-\n0||13 -/- 45 72/-\n1||0 -/- 40 31/-"},
	"dmon as CSV without units":     {strings.Replace(dmonCSV, "#Idx, W, C, C, %, %, %, %, %, %, MHz, MHz\n", "", 1), "0||12 -/- 44 71/-\n1||0 -/- 40 30/-\n0||13 -/- 45 72/-\n1||0 -/- 40 31/-"},
	"sections of an old driver":     {oldSections, "0|Tesla V100-SXM2-16GB|97 15230/16160 61 288.31/300\n1|Tesla V100-SXM2-16GB|- 0/16160 36 41.77/300\nprocess 4711 python 15220"},
	"sections of a new driver":      {newSections, "0|NVIDIA H100 80GB HBM3|- 11026/81559 52 432.11/700\nprocess 21180 /root/tools/memhog 2296\nprocess 21181 python3 train.py -"},
	"sections that were chosen":     {"Attached GPUs                             : 2\nGPU 00000000:18:00.0\n    GPU Power Readings\n        Power Draw                        : 111.38 W\n        Current Power Limit               : 700.00 W\nGPU 00000000:19:00.0\n    GPU Power Readings\n        Average Power Draw                : 99.01 W\n        Current Power Limit               : N/A\n", "0||- -/- - 111.38/700\n1||- -/- - 99.01/-"},
	"sections, twice":               {"\n==============NVSMI LOG==============\n\nTimestamp                       : Fri Jan  6 18:50:57 2012\n\nAttached GPUs                   : 1\n\nGPU 0000:01:00.0\n    Temperature\n        Gpu                     : 62 C\n\n==============NVSMI LOG==============\n\nAttached GPUs                   : 1\n\nGPU 0000:01:00.0\n    Temperature\n        Gpu                     : 63 C\n", "0||- -/- 62 -/-\n0||- -/- 63 -/-"},
	"a table with processes":        {processTable, "0|NVIDIA H100 80GB HBM3|- 11069/81559 52 432/700\nprocess 21180 /root/tools/memhog 2296\nprocess 21198 NVIDIA Share.exe -"},
	"processes of an old driver":    {"+------+\n| NVIDIA-SMI 418.67       Driver Version: 418.67       CUDA Version: 10.1     |\n|   0  Tesla K80           Off  | 00000000:00:04.0 Off |                    0 |\n| N/A   60C    P0    70W / 149W |     69MiB / 11441MiB |      0%      Default |\n+-------------------------------+----------------------+----------------------+\n| Processes:                                                       GPU Memory |\n|  GPU       PID   Type   Process name                             Usage      |\n|=============================================================================|\n|    0      1234      C   /usr/bin/python3 -m train                     58MiB |\n+-----------------------------------------------------------------------------+\n", "0|Tesla K80|0 69/11441 60 70/149\nprocess 1234 /usr/bin/python3 -m train 58"},
	"pmon with memory":              {"# gpu        pid  type    sm   mem   enc   dec    fb   command\n# Idx          #   C/G     %     %     %     %    MB   name\n    0       4711     C    97    40     -     -  8011   python\n    1          -     -     -     -     -     -     -   -\n", "process 4711 python 8011"},
	"processes":                     {"pid, process_name, used_gpu_memory [MiB]\n4711, /opt/conda/bin/python, 8011 MiB\n4712, [Not Found], [N/A]\n", "process 4711 /opt/conda/bin/python 8011\nprocess 4712 [Not Found] -"},
	"processes, other fields":       {"gpu_uuid, pid, name, used_memory [MiB]\nGPU-0a1b, 4711, python, 8011 MiB\n", "process 4711 python 8011"},
	"a table with errors":           {"+-----------------------------------------------------------------------------+\n| NVIDIA-SMI 470.82.01    Driver Version: 470.82.01    CUDA Version: 11.4     |\n|-------------------------------+----------------------+----------------------+\n|   0  Tesla V100-SXM2...  On   | 00000000:00:1E.0 Off |                    0 |\n| N/A   41C    P0    41W / 300W |   1024MiB / 16160MiB |      7%      Default |\n+-------------------------------+----------------------+----------------------+\n|   1  ERR!                On   | 00000000:00:1F.0 ERR! |                 ERR! |\n|ERR!  ERR! ERR!    ERR! / ERR! |   GPU is lost        |    ERR!         ERR! |\n", "0|Tesla V100-SXM2...|7 1024/16160 41 41/300\n1|ERR!|- -/- - -/-\nerror gpu_lost"},
	"XML of a new driver":           {"<?xml version=\"1.0\" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM \"nvsmi_device_v12.dtd\">\n<nvidia_smi_log>\n<attached_gpus>1</attached_gpus><gpu id=\"00000000:18:00.0\"><product_name>NVIDIA H200</product_name><fb_memory_usage><total>143771 MiB</total><reserved>551 MiB</reserved><used>4011 MiB</used></fb_memory_usage><utilization><gpu_util>N/A</gpu_util></utilization><temperature><gpu_temp>31 C</gpu_temp></temperature><gpu_power_readings><average_power_draw>118.01 W</average_power_draw><instant_power_draw>119.51 W</instant_power_draw><current_power_limit>700.00 W</current_power_limit></gpu_power_readings><processes><process_info><pid>99</pid><process_name>python</process_name><used_memory>3901 MiB</used_memory></process_info></processes></gpu></nvidia_smi_log>\n", "0|NVIDIA H200|- 4011/143771 31 119.51/700\nprocess 99 python 3901"},
	"XML that was cut":              {"<?xml version=\"1.0\" ?>\n<nvidia_smi_log><gpu id=\"0\"><product_name>NVIDIA A10G</product_name><temperature><gpu_temp>31 C</gpu_temp></temperature></gpu><gpu id=\"1\"><product_na", "0|NVIDIA A10G|- -/- 31 -/-\nerror other"},
	"rocm-smi":                      {"\n============================ ROCm System Management Interface ============================\n====================================== Concise Info ======================================\nGPU  Temp (DieEdge)  AvgPwr  SCLK  MCLK  Fan  Perf  PwrCap  VRAM%  GPU%\n0    35.0c           92.0W   800Mhz 1600Mhz 0% auto 560.0W 0% 0%\n", "error not_yet"},
	"amd-smi":                       {"+------------------------------------------------------------------------------+\n| AMD-SMI 25.3.0+ede62f2   ROCm version: 6.4.0   amdgpu version: 6.12.12        |\n+-------------------------------------+----------------------------------------+\n", "error not_yet"},
	"neuron-ls":                     {"instance-type: trn1.2xlarge\ninstance-id: i-0a1b\n+--------+--------+--------+\n| NEURON | NEURON | NEURON |\n| DEVICE | CORES  | MEMORY |\n", "error not_yet"},
	"no rocm-smi":                   {"sh: 1: rocm-smi: not found\n", "error not_yet"},
}

func TestAnswersOfManyDrivers(t *testing.T) {
	for name, c := range smiAnswers {
		t.Run(name, func(t *testing.T) {
			d, err := Read(strings.NewReader(c.text), nil, nil)
			if got := answered(d.SMI); err != nil || got != c.want || d.Format != NvidiaSMI {
				t.Errorf("as %s (%v)\n got %s\nwant %s", d.Format, err, got, c.want)
			}
		})
	}
}

func TestAnErrorOfATrainingIsNoAnswerOfNvidiaSmi(t *testing.T) {
	for _, text := range []string{
		"python: can't open file 'train.py': [Errno 2] No such file or directory\n",
		"bash: line 1: python3: command not found\n",
		"bash: ./train.sh: Permission denied\n",
	} {
		if d, err := Read(strings.NewReader(text), nil, nil); err != nil || d.Format != Log {
			t.Errorf("%q was read as %s (%v)", text, d.Format, err)
		}
	}
}
