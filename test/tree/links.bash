# SPDX-License-Identifier: MIT
# dead_links FOLDER: the links of the guides below FOLDER that lead to no file.
# shellcheck shell=bash
dead_links() {
    local page link
    find "$1" -name '*.md' | while IFS= read -r page; do
        sed '/^```/,/^```/d' "$page" | grep -oE '\]\([^)#]+' | sed 's/^](//' | grep -v '^http' | sort -u |
            while IFS= read -r link; do
                [ -e "$(dirname "$page")/$link" ] || echo "$page: nothing is at $link"
            done
    done
}
