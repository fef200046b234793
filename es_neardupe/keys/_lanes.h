/* The loops of signing that are worth a version for each kind of processor. This file is included once for each of them:
 * NAME(x) gives a function its suffix, PROCESSOR its attribute, LANE_BITS the width of its vectors (0: plain C). All
 * versions give the same bits. */

/* Lower-case ASCII letters, digits and _ stay, letters become lower case, and all else becomes a blank. */
PROCESSOR
static void NAME(fold_ascii)(const uint8_t *RESTRICT source, Py_ssize_t size, uint8_t *RESTRICT folded)
{
    for (Py_ssize_t k = 0; k < size; k++) {
        uint8_t byte = source[k], lower = byte | 0x20;
        uint8_t letter = (uint8_t)(lower - 'a') < 26, digit = (uint8_t)(byte - '0') < 10, low_line = byte == '_';
        folded[k] = (letter | digit) ? lower : low_line ? byte : BLANK;
    }
}

/* The same for the first of 16 code points, as far as they are ASCII: their number. 16 bytes are written. */
PROCESSOR
static Py_ssize_t NAME(fold_prefix)(const Py_UCS4 *points, uint8_t *folded)
{
#if LANE_BITS
#if LANE_BITS == 512
    __m512i all = _mm512_loadu_si512(points);
    uint32_t other = _mm512_cmpgt_epu32_mask(all, _mm512_set1_epi32(0x7F));
    __m128i narrow = _mm512_cvtepi32_epi8(all);
#else
    const __m256i limit = _mm256_set1_epi32(0x80);
    __m256i low = _mm256_min_epu32(_mm256_loadu_si256((const __m256i *)points), limit);
    __m256i high = _mm256_min_epu32(_mm256_loadu_si256((const __m256i *)(points + 8)), limit);
    __m256i both = _mm256_permute4x64_epi64(_mm256_packus_epi32(low, high), 0xD8);
    __m128i narrow = _mm_packus_epi16(_mm256_castsi256_si128(both), _mm256_extracti128_si256(both, 1));
    uint32_t other = (uint32_t)_mm_movemask_epi8(narrow);
#endif
    _mm_storeu_si128((__m128i *)folded, fold_16(narrow));
    return trailing_zeros(other | 1u << 16);
#else
    Py_UCS4 all = 0;
    uint8_t narrow[16];
    for (int k = 0; k < 16; k++) {
        all |= points[k];
        narrow[k] = (uint8_t)points[k];
    }
    if (all < 0x80) {
        NAME(fold_ascii)(narrow, 16, folded);
        return 16;
    }
    NAME(fold_ascii)(narrow, 1, folded); /* of which the caller knows that it is ASCII */
    return 1;
#endif
}

/* Which of 64 bytes are no blanks. */
PROCESSOR
static uint64_t NAME(no_blanks)(const uint8_t *bytes)
{
#if LANE_BITS == 512
    return _mm512_cmpneq_epi8_mask(_mm512_loadu_si512(bytes), _mm512_set1_epi8(BLANK));
#elif LANE_BITS == 256
    const __m256i blanks = _mm256_set1_epi8(BLANK);
    uint32_t low = _mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_loadu_si256((const __m256i *)bytes), blanks));
    uint32_t high = _mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_loadu_si256((const __m256i *)(bytes + 32)), blanks));
    return ~((uint64_t)high << 32 | low);
#else
    uint64_t found = 0;
    for (int k = 0; k < 8; k++) {
        uint64_t word;
        memcpy(&word, bytes + 8 * k, 8);
        word ^= BLANKS;
        word |= (word & ~(ONES << 7)) + ~(ONES << 7); /* the top bit of each byte: whether it is not zero */
        found |= (((word >> 7) & ONES) * UINT64_C(0x0102040810204080) >> 56) << (8 * k);
    }
    return found;
#endif
}

/* The places where runs of other bytes than blanks begin and end, by turns. 64 bytes behind the end must be blanks. */
PROCESSOR
static Py_ssize_t NAME(find_edges)(const uint8_t *folded, Py_ssize_t size, uint32_t *edge)
{
    uint32_t *next = edge;
    uint64_t carry = 0;
    for (Py_ssize_t at = 0; at <= size; at += 64) {
        uint64_t word = NAME(no_blanks)(folded + at), edges = word ^ (word << 1 | carry);
        carry = word >> 63;
#if LANE_BITS == 512
        const __m512i places = _mm512_set_epi64(0x3F3E3D3C3B3A3938, 0x3736353433323130, 0x2F2E2D2C2B2A2928,
                                                0x2726252423222120, 0x1F1E1D1C1B1A1918, 0x1716151413121110,
                                                0x0F0E0D0C0B0A0908, 0x0706050403020100);
        __m512i found = _mm512_maskz_compress_epi8(edges, places), base = _mm512_set1_epi32((int)at);
        int left = __builtin_popcountll(edges);
        uint32_t *end = next + left;
        for (; left > 0; left -= 16, next += 16) { /* sixteen at a time: what is too many is written over */
            _mm512_storeu_si512(next, _mm512_add_epi32(_mm512_cvtepu8_epi32(_mm512_castsi512_si128(found)), base));
            found = _mm512_alignr_epi32(found, found, 4);
        }
        next = end;
#elif LANE_BITS
        int left = __builtin_popcountll(edges);
        uint32_t *end = next + left;
        for (; left > 0; left -= 8) { /* eight at a time: what is too many is written over */
            for (int k = 0; k < 8; k++) {
                next[k] = (uint32_t)at + (uint32_t)trailing_zeros(edges | UINT64_C(1) << 63);
                edges &= edges - 1;
            }
            next += 8;
        }
        next = end;
#else
        for (; edges; edges &= edges - 1)
            *next++ = (uint32_t)at + (uint32_t)trailing_zeros(edges);
#endif
    }
    return next - edge;
}

/* The hashes of BATCH tokens of at most 16 bytes, given their two words without other bytes. */
PROCESSOR
static void NAME(hash_batch)(const uint64_t *RESTRICT word, const uint64_t *RESTRICT size, uint64_t *RESTRICT hash)
{
    for (int k = 0; k < BATCH; k++) {
        uint64_t step = GOLDEN * size[k];
        uint64_t later = mix64(word[2 * k + 1] + step + (GOLDEN << 32)) & -(uint64_t)(size[k] > 8);
        hash[k] = mix64(word[2 * k] + step) + later;
    }
}

#if LANE_BITS != 512
/* mix64 of four sums and an addend. */
PROCESSOR
static inline void NAME(mix_four)(const uint64_t *sum, uint64_t addend, uint64_t *value)
{
#if LANE_BITS
    Four four = {sum[0], sum[1], sum[2], sum[3]};
    four += addend;
    four = (four ^ four >> 30) * MIX_FIRST;
    four = (four ^ four >> 27) * MIX_SECOND;
    four ^= four >> 31;
    memcpy(value, &four, sizeof(four));
#else
    for (int p = 0; p < 4; p++)
        value[p] = mix64(sum[p] + addend);
#endif
}

/* See hash_windows. The sum of a window is made from the one before: its first unit leaves, and the next one is appended.
 * Each multiplication needs the result of the one before, so that four parts of the windows take turns. */
PROCESSOR
static inline void NAME(roll)(const uint64_t *hash, const uint8_t *letter, Py_ssize_t size, Py_ssize_t windows,
                              uint64_t *value)
{
    Py_ssize_t part = (windows - 1) / 4;
    uint64_t power = 1, sum[4]; /* power: the factor of a unit that leaves */
    for (Py_ssize_t k = 0; k < size; k++)
        power *= MULTIPLIER;
    for (int p = 0; p < 4; p++)
        sum[p] = sum_units(hash, letter, p * part, size, 0);
    for (Py_ssize_t k = 0; k < part; k++, value += 4) {
        NAME(mix_four)(sum, (uint64_t)size * power, value);
        for (int p = 0; p < 4; p++) {
            Py_ssize_t at = p * part + k;
            sum[p] = sum[p] * MULTIPLIER + unit(hash, letter, at + size) - unit(hash, letter, at) * power;
        }
    }
    for (Py_ssize_t k = 4 * part; k < windows; k++)
        *value++ = mix64(sum_units(hash, letter, k, size, (uint64_t)size));
}
#endif

/* The hashes of all windows of some units, in any order. AVX-512 multiplies numbers of 64 bits: BATCH windows at a time of
 * units that are no letters; up to BATCH more are read and written. */
PROCESSOR
static void NAME(hash_windows)(const uint64_t *RESTRICT hash, const uint8_t *RESTRICT letter, Py_ssize_t size,
                               Py_ssize_t windows, uint64_t *RESTRICT value)
{
#if LANE_BITS == 512
    for (; windows > 0; windows -= BATCH, hash += BATCH, value += BATCH) {
        uint64_t sum[BATCH];
        for (int k = 0; k < BATCH; k++)
            sum[k] = (uint64_t)size;
        for (Py_ssize_t j = 0; j < size; j++)
            for (int k = 0; k < BATCH; k++)
                sum[k] = sum[k] * MULTIPLIER + hash[j + k];
        for (int k = 0; k < BATCH; k++)
            value[k] = mix64(sum[k]);
    }
#else
    if (letter) /* a loop of its own */
        NAME(roll)(hash, letter, size, windows, value);
    else
        NAME(roll)(hash, NULL, size, windows, value);
#endif
}

/* The extremes of the lower halves of some values for GROUP multipliers. */
PROCESSOR
static void NAME(extremes_of_group)(const uint64_t *value, Py_ssize_t size, const uint32_t *shift,
                                    const uint32_t *multiplier, uint32_t *least, uint32_t *greatest, Places *found)
{
    Places places = *found;
#if LANE_BITS == 512
    const __m512i shifts = _mm512_broadcast_i64x4(_mm256_loadu_si256((const __m256i *)shift));
    __m512i f0 = _mm512_loadu_si512(multiplier), f1 = _mm512_loadu_si512(multiplier + 16);
    __m512i l0 = _mm512_set1_epi32(-1), l1 = l0, g0 = _mm512_setzero_si512(), g1 = g0;
    for (Py_ssize_t k = 0; k < size; k++) {
        take_place(&places, value[k], k);
        __m512i one = _mm512_add_epi32(_mm512_set1_epi32((int)(uint32_t)value[k]), shifts), y;
        y = _mm512_mullo_epi32(one, f0), l0 = _mm512_min_epu32(l0, y), g0 = _mm512_max_epu32(g0, y);
        y = _mm512_mullo_epi32(one, f1), l1 = _mm512_min_epu32(l1, y), g1 = _mm512_max_epu32(g1, y);
    }
    _mm512_storeu_si512(least, l0), _mm512_storeu_si512(least + 16, l1);
    _mm512_storeu_si512(greatest, g0), _mm512_storeu_si512(greatest + 16, g1);
#elif LANE_BITS == 256
    const __m256i shifts = _mm256_loadu_si256((const __m256i *)shift), *factor = (const __m256i *)multiplier;
    __m256i f0 = _mm256_loadu_si256(factor), f1 = _mm256_loadu_si256(factor + 1);
    __m256i f2 = _mm256_loadu_si256(factor + 2), f3 = _mm256_loadu_si256(factor + 3);
    __m256i l0 = _mm256_set1_epi32(-1), l1 = l0, l2 = l0, l3 = l0;
    __m256i g0 = _mm256_setzero_si256(), g1 = g0, g2 = g0, g3 = g0;
    for (Py_ssize_t k = 0; k < size; k++) {
        take_place(&places, value[k], k);
        __m256i one = _mm256_add_epi32(_mm256_set1_epi32((int)(uint32_t)value[k]), shifts), y;
        y = _mm256_mullo_epi32(one, f0), l0 = _mm256_min_epu32(l0, y), g0 = _mm256_max_epu32(g0, y);
        y = _mm256_mullo_epi32(one, f1), l1 = _mm256_min_epu32(l1, y), g1 = _mm256_max_epu32(g1, y);
        y = _mm256_mullo_epi32(one, f2), l2 = _mm256_min_epu32(l2, y), g2 = _mm256_max_epu32(g2, y);
        y = _mm256_mullo_epi32(one, f3), l3 = _mm256_min_epu32(l3, y), g3 = _mm256_max_epu32(g3, y);
    }
    __m256i *low = (__m256i *)least, *high = (__m256i *)greatest;
    _mm256_storeu_si256(low, l0), _mm256_storeu_si256(low + 1, l1);
    _mm256_storeu_si256(low + 2, l2), _mm256_storeu_si256(low + 3, l3);
    _mm256_storeu_si256(high, g0), _mm256_storeu_si256(high + 1, g1);
    _mm256_storeu_si256(high + 2, g2), _mm256_storeu_si256(high + 3, g3);
#else
    for (int p = 0; p < GROUP; p++)
        least[p] = UINT32_MAX, greatest[p] = 0;
    for (Py_ssize_t from = 0; from < size; from += 256) {
        uint32_t some[256];
        int count = size - from < 256 ? (int)(size - from) : 256;
        for (int k = 0; k < count; k++) {
            some[k] = (uint32_t)value[from + k];
            take_place(&places, value[from + k], from + k);
        }
        for (int p = 0; p < GROUP; p++) {
            uint32_t low = least[p], high = greatest[p], add = shift[p % SHIFTS], factor = multiplier[p];
            for (int k = 0; k < count; k++) {
                uint32_t permuted = (some[k] + add) * factor;
                low = permuted < low ? permuted : low;
                high = permuted > high ? permuted : high;
            }
            least[p] = low, greatest[p] = high;
        }
    }
#endif
    found->meetings = places.meetings;
}

static const Loops NAME(loops) = {NAME(fold_ascii), NAME(fold_prefix),   NAME(find_edges),
                                  NAME(hash_batch), NAME(hash_windows), NAME(extremes_of_group),
                                  LANE_BITS != 512};
