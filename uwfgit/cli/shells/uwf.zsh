#compdef uwf
# Completion of uwf for zsh. In ~/.zshrc, behind compinit:
#   eval "$(uwf completion zsh)"
_uwf() {
    local line tab=$'\t'
    local -a values shown
    while IFS= read -r line; do
        case $line in
            :file) _files ;;
            :dir) _files -/ ;;
            *)
                values+=("${line%%$tab*}")
                shown+=("${${line/$tab/  -- }[1,COLUMNS-1]}")
                ;;
        esac
    done < <("${(Q)words[1]/#\~/$HOME}" __complete "${(@Q)words[2,CURRENT]}" 2>/dev/null)
    # -U: a thread may be named by its end, or in lower case.
    (( $#values )) && compadd -U -V uwf -l -d shown -a values
}
if [[ $funcstack[1] == _uwf ]]; then
    _uwf "$@"
else
    compdef _uwf uwf
fi
