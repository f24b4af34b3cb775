# A job of the storm: `sh job.sh FOLDER STEPS KIND`. It works in FOLDER, a line of `work` for each step, and begins where the
# attempt before left off. Each of its processes holds a token while it lives; who finds that another live process holds
# the same one writes so into `doubled`.
folder=$1 steps=$2 kind=$3 part=$4

# When a process was started, in ticks since the boot. Nothing where it is gone, a zombie included.
started() {
    stat=
    [ -e "/proc/$1/stat" ] && read -r stat 2>/dev/null <"/proc/$1/stat"
    set -- ${stat##*) }
    case $1 in '' | Z | X) ;; *) echo "${20}" ;; esac
}

me="$$ $(started $$)"

take() {
    until (set -C && echo "$me" >"$folder/token.$1") 2>/dev/null; do
        pid= since=
        read -r pid since <"$folder/token.$1"
        if [ -n "$since" ] && [ "$(started "$pid")" = "$since" ]; then
            echo "$1: $me beside $pid $since" >>"$folder/doubled"
            exit 1
        fi
        rm -f "$folder/token.$1"
    done
}

# Between a look at a token and its removal another could take it; who still holds it is found out at every step.
hold() {
    held=
    read -r held <"$folder/token.$1"
    [ "$held" = "$me" ] || echo "$1: $me, but the token has $held" >>"$folder/doubled"
}

if [ -n "$part" ]; then
    take "$part"
    while [ -e "$folder/token.main" ] && [ ! -e "$folder/done" ]; do
        hold "$part"
        [ "$part" = pipe ] && echo "still here"
        sleep 0.3
    done
    rm -f "$folder/token.$part"
    exit 0
fi

take main
case $kind in
stubborn) trap '' TERM ;;
fork) sh "$0" "$folder" "$steps" "$kind" child >/dev/null 2>&1 & ;;
session) setsid sh "$0" "$folder" "$steps" "$kind" session >/dev/null 2>&1 & ;;
pipe) setsid sh "$0" "$folder" "$steps" "$kind" pipe & ;;
twice) (setsid sh "$0" "$folder" "$steps" "$kind" twice >/dev/null 2>&1 &) ;;
esac

step=$(wc -l <"$folder/work" 2>/dev/null || echo 0)
while [ "$step" -lt "$steps" ]; do
    hold main
    step=$((step + 1))
    echo "$step" >>"$folder/work"
    sleep 0.3
done
: >"$folder/done"
rm -f "$folder/token.main"
