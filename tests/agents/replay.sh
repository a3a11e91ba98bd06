#!/bin/sh
# Prints what a CLI printed when it was recorded (see record.py), for tests without it.
# $REPLAY names a file with one recording a line; the last one repeats.
# $REPLAY_FROM are the folders that hold recordings of the kind, by the colon.
case "$1" in
  --version) echo 1.2.3; exit ;;
  export) echo "Session not found" >&2; exit 1 ;;
esac
read -r mode < "$REPLAY"
if [ "$(wc -l < "$REPLAY")" -gt 1 ]; then sed -i 1d "$REPLAY"; fi
printf '%s\n' "$*" >> "$REPLAY.heard"
cat >> "$REPLAY.heard"
IFS=:
for folder in $REPLAY_FROM; do
  [ -e "$folder/$mode.out" ] && here="$folder/$mode"
done
if [ -n "$REPLAY_PAUSE" ]; then
  while IFS= read -r line; do printf '%s\n' "$line"; sleep "$REPLAY_PAUSE"; done < "$here.out"
else
  # A time that is yet to come: told to the test as well.
  soon=$(($(date +%s) + 3))
  if grep -q @SOON@ "$here.out"; then echo $soon > "$REPLAY.soon"; fi
  sed "s/\"@SOON@\"/$soon/" "$here.out"
fi
cat "$here.err" >&2
code=$(cat "$here.code")
[ -n "$code" ] || exec sleep 600
exit "$code"
