#!/bin/sh
# Prints the kubectl commands that write on a node what its machine is, for people who do not run `kubenexus discover`:
#
#   sh label-node.sh NODE        on the machine; nothing is changed
#
# Run what it prints where kubectl is. It tells NUMA nodes, threads, and of GPUs the number, memory, model and NUMA
# nodes. What joins them, InfiniBand and NodeResourceTopologies are only in `kubenexus discover` (docs/discovery.md).
set -eu

if [ $# -ne 1 ]; then
	echo "usage: $0 NODE" >&2
	exit 1
fi
name=$1
sys=${ROOT:-}/sys # ROOT: another folder that has a sys, for tests
nodes=$sys/devices/system/node
labels=
annotations=

label() { labels="$labels \\
  '$1=$2'"; }
annotate() { annotations="$annotations \\
  '$1=$2'"; }
first_line() { head -c 65536 "$1" 2>/dev/null | head -n 1; }
expand() { # 0-3,8 as lines
	echo "$1" | tr ',' '\n' | awk -F- 'NF && $1 ~ /^[0-9]+$/ { for (i = $1; i <= (NF > 1 ? $2 : $1) && i < 8192; i++) print i }'
}

# --- NUMA nodes that have CPUs
online=$(expand "$(first_line "$nodes/online")")
places=
for id in $online; do
	if [ -n "$(first_line "$nodes/node$id/cpulist")" ]; then
		places="$places $id"
	fi
done
count=0
threads=
for id in $places; do
	count=$((count + 1))
	cpus=$(first_line "$nodes/node$id/cpulist")
	annotate "numa.kubenexus.io/node-$id-cpus" "$cpus"
	memory=$(awk '$3 == "MemTotal:" { print $4; exit }' "$nodes/node$id/meminfo" 2>/dev/null || true)
	if [ -n "$memory" ]; then
		annotate "numa.kubenexus.io/node-$id-memory" "${memory}Ki"
	fi
	# Distances are in the order of the NUMA nodes that are online.
	set -- $(first_line "$nodes/node$id/distance")
	for other in $online; do
		[ $# -gt 0 ] || break
		case " $places " in *" $other "*) annotate "numa.kubenexus.io/node-$id-distance-$other" "$1" ;; esac
		shift
	done
	first=$(expand "$cpus" | head -n 1)
	siblings=$(first_line "$sys/devices/system/cpu/cpu$first/topology/core_cpus_list")
	threads="$threads $(expand "$siblings" | wc -l | tr -d ' ')"
done
if [ "$count" -gt 0 ]; then
	label numa.kubenexus.io/node-count "$count"
fi
threads=$(printf '%s\n' $threads | sort -u)
case $threads in [1-8]) label numa.kubenexus.io/threads-per-core "$threads" ;; esac

# --- GPUs: address, memory in MiB and model, in the order of the driver
if command -v nvidia-smi >/dev/null 2>&1; then
	cards=$(nvidia-smi --query-gpu=pci.bus_id,memory.total,name --format=csv,noheader,nounits 2>/dev/null |
		tr 'A-Z' 'a-z' | awk -F', ' '{ sub(/^0000/, "", $1); print $1, $2 }' || true)
	model=$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | sort -u || true)
else
	model=
	cards=
	for device in "$sys"/bus/pci/devices/*; do
		if [ "$(first_line "$device/vendor")" = 0x1002 ] && [ -r "$device/mem_info_vram_total" ]; then
			memory=$(($(first_line "$device/mem_info_vram_total") / 1048576))
			cards="$cards${device##*/} $memory
"
		fi
	done
fi
cards=$(printf '%s\n' "$cards" | awk 'NF == 2')
if [ -n "$cards" ]; then
	label gpu.kubenexus.io/count "$(printf '%s\n' "$cards" | wc -l | tr -d ' ')"
	sizes=$(printf '%s\n' "$cards" | awk '{ print $2 }' | sort -u)
	case $sizes in *[!0-9]*) echo "# the GPUs have different memory: no label for it" ;; *) label gpu.kubenexus.io/vram "${sizes}Mi" ;; esac
	if [ "$(printf '%s\n' "$model" | grep -c .)" = 1 ]; then
		label gpu.kubenexus.io/model "$(printf '%s' "$model" | tr -cs 'A-Za-z0-9_.-' '-' | cut -c 1-63 | sed 's/[-_.]*$//')"
	fi
	number=0
	for address in $(printf '%s\n' "$cards" | awk '{ print $1 }'); do
		numa=$(first_line "$sys/bus/pci/devices/$address/numa_node")
		case $numa in '' | *[!0-9]*) ;; *) annotate "gpu.kubenexus.io/numa-node-$number" "$numa" ;; esac
		number=$((number + 1))
	done
fi

[ -z "$labels" ] || printf "kubectl label node '%s' --overwrite%s\n" "$name" "$labels"
[ -z "$annotations" ] || printf "kubectl annotate node '%s' --overwrite%s\n" "$name" "$annotations"
