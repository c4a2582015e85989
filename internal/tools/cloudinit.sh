#!/bin/sh
# cloudinit.sh: runs the tests of user-data that need the real cloud-init (Debian and
# Ubuntu). The package is unpacked into the user's cache directory and not installed:
# installed it would take over this machine's boot.
set -eu
at=${XDG_CACHE_HOME:-$HOME/.cache}/dlwb/cloud-init
if ! [ -x "$at/python" ] || ! "$at/python" -c 'import cloudinit.user_data, cloudinit.handlers.cloud_config' 2>/dev/null; then
    rm -rf "$at"
    mkdir -p "$at"
    (cd "$at" && apt-get download cloud-init && dpkg -x cloud-init_*.deb root)
    python3 -m venv "$at/venv"
    "$at/venv/bin/pip" --quiet --disable-pip-version-check install pyyaml==6.0.3 configobj==5.0.9 jinja2==3.1.6 jsonpatch==1.33 jsonschema==4.25.1 oauthlib==3.3.1 requests==2.32.5 pyserial==3.5
    printf '#!/bin/sh\nPYTHONPATH=%s exec %s "$@"\n' "'$at/root/usr/lib/python3/dist-packages'" "'$at/venv/bin/python'" >"$at/python"
    chmod 755 "$at/python"
fi
DLWB_CLOUDINIT="$at/python" go test -count=1 -v -run 'CloudInitKeeps' ./cloud/ec2/userdata
