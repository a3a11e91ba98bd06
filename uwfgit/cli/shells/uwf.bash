# Completion of uwf for bash. In ~/.bashrc:  eval "$(uwf completion bash)"
_uwf() {
    local line program="${COMP_WORDS[0]/#\~/$HOME}"
    COMPREPLY=()
    while IFS= read -r line; do
        case $line in
            :file) compopt -o default 2>/dev/null ;;
            :dir) compopt -o dirnames 2>/dev/null ;;
            *) COMPREPLY+=("${line%%$'\t'*}") ;;
        esac
    done < <("$program" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o nosort -F _uwf uwf 2>/dev/null || complete -F _uwf uwf
