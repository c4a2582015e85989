#!/bin/sh
# volumes: mounts the data volumes and the instance store of this machine.
#
# Called by cloud-init, as root, at the end of each boot, for the lines of $volumes in settings:
# PATH WHAT SIZE, where WHAT is vol-…,vol-… (EBS volumes, of which one is this
# machine's), new (one of SIZE bytes that was made with the machine, the first as sdf,
# the next as sdg) or
# instance-store (all disks of it as one).
# A disk is formatted only when blkid, wipefs, lsblk and its own bytes agree
# that nothing is on it. What can't be found out is taken for something.
# Leaves boot.failed with what failed, which dlwb shows, and volumes.made.
dir=${DLWB_DIR:-/var/lib/dlwb}
# A volume may be with a machine that ends for as long as dlwb waits for it.
volumes='' patience=${DLWB_PATIENCE:-420}
# shellcheck disable=SC1091
. "$dir/settings"
dev=${DLWB_DEV:-/dev}
mib=1048576

fail() {
    echo "$*" >>"$dir/boot.failed"
}

# disks: NAME SERIAL SIZE MODEL of each whole disk; a dash for what it has not.
disks() {
    lsblk -bdnP -o NAME,SERIAL,SIZE,TYPE,MODEL 2>/dev/null |
        sed -n 's/^NAME="\([A-Za-z0-9_-]*\)" SERIAL="\([A-Za-z0-9_-]*\) *" SIZE="\([0-9]*\)" TYPE="disk" MODEL="\([^"]*\)"$/\1 \2- \3 \4/p'
}

size_of() {
    disks | while read -r name _ size _; do
        [ "$dev/$name" != "$1" ] || echo "$size"
    done
}

# zeros DISK MIB: whether that MiB can be read, and has nothing in it. The sum of
# a MiB of zeros stands here, so that no program that fails can say it.
zeros() {
    case $(dd if="$1" bs=$mib skip="$2" count=1 2>/dev/null | sha256sum) in
        30e14955ebf1352266dc2ff8067e68104607e750abb9d3b36582b8af909fcb58*) ;;
        *) return 1 ;;
    esac
}

# blank DISK: whether it is certain that nothing is on it; else why says what
# speaks against it.
blank() {
    for program in blkid wipefs lsblk sha256sum dd; do
        command -v $program >/dev/null 2>&1 || { why="$program is not there, so that nobody knows what is on it"; return 1; }
    done
    said=$(blkid -p "$1" 2>&1)
    case $? in
        2) [ -z "$said" ] || { why="blkid says: $said"; return 1; } ;;
        0) why="it holds something: ${said#*: }"; return 1 ;;
        *) why="blkid can't tell what is on it: $said"; return 1 ;;
    esac
    if ! said=$(wipefs -n "$1" 2>&1) || [ -n "$said" ]; then why="wipefs finds something: $said"; return 1; fi
    if ! said=$(lsblk -nro FSTYPE,PTTYPE,MOUNTPOINT "$1" 2>&1) || [ -n "$(echo "$said" | tr -d ' \n')" ]; then
        why="lsblk shows: $said"
        return 1
    fi
    size=$(size_of "$1")
    case $size in '' | *[!0-9]* | 0) why="its size is not known"; return 1 ;; esac
    last=$((size / mib - 1))
    for at in 0 1 2 3 $((last / 8)) $((last / 4)) $((last / 2)) $((last * 3 / 4)) $((last - 1)) $last; do
        if [ "$at" -lt 0 ] || [ "$at" -gt "$last" ]; then continue; fi
        zeros "$1" "$at" || { why="there are bytes on it, $at MiB from its beginning, or it can't be read"; return 1; }
    done
}

# mounted PATH
mounted() {
    grep -qs " $1 " /proc/mounts
}

# bring DISK PATH: mounts a disk, formats it before where it is blank.
bring() {
    fresh=''
    if [ "$(blkid -p -o value -s USAGE "$1" 2>/dev/null)" != filesystem ]; then
        blank "$1" || { fail "$2: $1 is not formatted: $why"; return 1; }
        said=$(mkfs.ext4 -q -m 0 "$1" 2>&1 </dev/null) || { fail "$2: mkfs.ext4 $1: $said"; return 1; }
        fresh=yes
    fi
    if ! said=$(mkdir -p "$2" 2>&1 && mount "$1" "$2" 2>&1); then fail "$2: mount $1: $said"; return 1; fi
    [ -z "$fresh" ] || chmod 1777 "$2"
}

# volume PATH ID: an EBS volume shows its id as its serial number. It may come
# later than the machine.
volume() {
    serials=,$(echo "$2" | tr -d -), tries=0
    while [ "$tries" -le "$patience" ]; do
        found=$(disks | while read -r name has _; do
            case $serials in *",${has%-},"*) echo "$name" ;; esac
        done)
        [ -z "$found" ] || { bring "$dev/$found" "$1"; return; }
        tries=$((tries + 1))
        sleep 1
    done
    fail "$1: the volume $2 is not attached to this machine after $patience s"
}

# identify DISK: what an EBS disk says of itself: the name by which EC2 knows it.
identify() {
    ebsnvme-id -b "$1" 2>/dev/null && return
    nvme id-ctrl -b "$1" 2>/dev/null | dd bs=1 skip=3072 count=32 2>/dev/null | tr -d ' \000' | grep . && return
    python3 -c 'import ctypes, fcntl, struct, sys
buf = ctypes.create_string_buffer(4096)
with open(sys.argv[1]) as f:
    fcntl.ioctl(f, 0xC0484E41, struct.pack("<BBHIIIQQII8I", 6, 0, 0, 0, 0, 0, 0, ctypes.addressof(buf), 0, 4096, 1, 0, 0, 0, 0, 0, 0, 0))
print(buf.raw[3072:3104].decode("ascii", "replace").strip(" \0"))' "$1" 2>/dev/null
}

# called NAME: how EC2 calls a disk, as sdf; empty where nobody can tell.
called() {
    case $1 in
        xvd*) as=$1 ;;
        *) as=$(identify "$dev/$1") as=${as#/dev/} ;;
    esac
    case $as in
        xvd[a-z]*) echo "sd${as#xvd}" ;;
        sd[a-z]*) echo "$as" ;;
    esac
}

# candidates SIZE NAME: the disks that may be the volume of that size which was made
# with the machine: the one that EC2 calls so, else those of which nobody can tell.
# Volumes that the profile names are others'.
candidates() {
    others=,$(echo "$volumes" | sed -n 's/^[^ ]* \(vol-[^ ]*\) .*/\1/p' | tr -d - | tr '\n' ,)
    disks | while read -r name has size model; do
        if [ "$size" != "$1" ] || [ "$model" = "Amazon EC2 NVMe Instance Storage" ]; then continue; fi
        case $others in *",${has%-},"*) [ "$has" = - ] || continue ;; esac
        is=$(called "$name")
        case $is in "$2") echo "is $dev/$name" ;; '') echo "may $dev/$name" ;; esac
    done
}

# made PATH SIZE NAME: the volume that was made with the machine. Which one it is was
# written down when it was formatted; the first time it is the one that EC2 calls
# so. Where nobody can tell, a blank one of its size is, if there are no more of them
# than were made.
made() {
    if known=$(sed -n "s|^$1 ||p" "$dir/volumes.made" 2>/dev/null) && [ -n "$known" ]; then
        at=$(blkid -U "$known") || { fail "$1: its volume is not there: UUID $known"; return 1; }
        bring "$at" "$1"
        return
    fi
    all=$(candidates "$2" "$3")
    disk=$(echo "$all" | sed -n 's/^is //p' | head -n 1)
    if [ -z "$disk" ]; then
        wanted=$(echo "$volumes" | while read -r other what size; do
            [ "$what $size" = "new $2" ] && ! grep -qs "^$other " "$dir/volumes.made" && echo one
        done | grep -c .)
        free=0
        for one in $(echo "$all" | sed -n 's/^may //p'); do
            if blank "$one"; then free=$((free + 1)) disk=${disk:-$one}; fi
        done
        [ "$free" -le "$wanted" ] || { fail "$1: $free disks of $2 bytes are blank, and nobody can tell which of them was made for it: install nvme-cli"; return 1; }
    fi
    [ -n "$disk" ] || { fail "$1: no disk of $2 bytes is blank${why:+; the last one: $why}"; return 1; }
    bring "$disk" "$1" || return 1
    echo "$1 $(blkid -p -o value -s UUID "$disk")" >>"$dir/volumes.made"
}

# store PATH: the instance store as one disk. Images may have mounted it already.
store() {
    # shellcheck disable=SC2046
    set -- "$1" $(disks | while read -r name _ _ model; do
        [ "$model" != "Amazon EC2 NVMe Instance Storage" ] || echo "$dev/$name"
    done)
    path=$1
    shift
    [ $# -gt 0 ] || { fail "$path: this type of machine has no instance store"; return 1; }
    there=$(lsblk -nro MOUNTPOINT "$1" 2>/dev/null | grep -m 1 /)
    if [ -n "$there" ]; then
        said=$(mkdir -p "$path" 2>&1 && mount --bind "$there" "$path" 2>&1) || fail "$path: mount --bind $there: $said"
        return
    fi
    raid=$(lsblk -nrpo NAME,TYPE "$1" 2>/dev/null | sed -n 's/ raid0$//p')
    if [ -n "$raid" ]; then bring "$raid" "$path"; return; fi
    for disk in "$@"; do
        blank "$disk" || { fail "$path: $disk is not formatted: $why"; return 1; }
    done
    if [ $# -eq 1 ]; then bring "$1" "$path"; return; fi
    command -v mdadm >/dev/null 2>&1 || { fail "$path: mdadm is not there, which makes one disk of $#: install it by machines.user_data"; return 1; }
    said=$(mdadm --create "$dev/md/dlwb" --run --level=0 --raid-devices=$# "$@" 2>&1 </dev/null) || { fail "$path: mdadm: $said"; return 1; }
    said=$(mkfs.ext4 -q -m 0 "$dev/md/dlwb" 2>&1 </dev/null) || { fail "$path: mkfs.ext4: $said"; return 1; }
    bring "$dev/md/dlwb" "$path" && chmod 1777 "$path"
}

rm -f "$dir/boot.failed"
letters='f g h i j k l m n o p'
echo "$volumes" | while read -r path what size; do
    if [ "$what" = new ]; then name=sd${letters%% *} letters=${letters#* }; fi
    if [ -z "$path" ] || mounted "$path"; then continue; fi
    why=''
    case $what in
        new) made "$path" "$size" "$name" ;;
        instance-store) store "$path" ;;
        *) volume "$path" "$what" ;;
    esac
done
exit 0
