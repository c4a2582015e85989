#!/bin/sh
# chown, chgrp: all files of a guest belong to whoever runs the rig.
exit 0
